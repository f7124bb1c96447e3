# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import re

text = json.dumps([{"n": n, "square": n * n, "name": f"row {n}"} for n in range(300)])
rows = json.loads(text)
words = re.findall(r"[a-z]+ \d+", text)
digest = hashlib.sha256(text.encode()).hexdigest()
print(len(rows), len(words), sum(row["square"] for row in rows), digest[:16])
