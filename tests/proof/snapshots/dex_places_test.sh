#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names of bytecode, wherever the dex file is: a real stack of ART 11, whose .vdex file is put into memory alone, into an
# archive, into an OAT file, or is another than was mapped. Usage: dex_places_test.sh QUT
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
qut=$(readlink -f "$1")
# shellcheck source=tests/support/lib.sh
. "$here/../../support/lib.sh"

corpus=${QUT_SHARED:-$here/../../../../shared}/corpus
interpreted=art11/x86_64_int
if [ ! -d "$corpus/$interpreted" ]; then
    echo "SKIP: no $corpus/$interpreted"
    exit 77
fi
export QUT_CACHE=$work/cache
# Outside this process: expand changes directories.
sh "$corpus/expand" "$work/snapshots"
cd "$work/snapshots"

dex_elsewhere() # NAME WANTED_LINES
{
    run stack --snapshot "$name"
    grep '^  #' "$work/out" >"$work/lines" || true
    good=0
    diff "$2" "$work/lines" >"$work/diff" || good=1
    result "$1" "$good" "$(head -c 2000 "$work/diff")"
}
# mem_vdex.data is the file that was mapped, as it is in memory.
name=dex_elsewhere
cp -r $interpreted $name
rm $name/libart.so.0
cp art11/common/libart_x86_64.so.0 $name/libart.so.0
chmod -R u+w $name
start=$(sed -n 's/^\([0-9a-f]*\)-.* 00000000 .*boot-snap\.vdex$/\1/p' $name/maps.txt)
python3 - "$name" "$start" <<'END'
import pathlib
import struct
import sys
directory = pathlib.Path(sys.argv[1])
vdex = (directory / "boot-snap.vdex").read_bytes()
(directory / "mem_vdex.data").write_bytes(struct.pack("<Q", int(sys.argv[2], 16)) + vdex)
# Another build: another signature, another name.
signature = vdex.index(b"cdex001") + 12
vdex = vdex[:signature] + b"another" + vdex[signature + 7 :].replace(b"\x03osr\0", b"\x03xyz\0")
(directory / "boot-snap.vdex").write_bytes(vdex)
END
dex_elsewhere "another file than was mapped" $interpreted/output.txt
rm $name/boot-snap.vdex
dex_elsewhere "no file" $interpreted/output.txt
rm $name/mem_vdex.data
sed 's/\(boot-snap\.vdex\) (.*/\1/' $interpreted/output.txt >"$work/nameless"
dex_elsewhere "neither file nor memory" "$work/nameless"
expect "... and -v says so" 0 "" "boot-snap.vdex: no names for bytecode" stack -v --snapshot "$name"

# Stored in an archive, of which a part is mapped: pc counts from the dex file.
sed -i "s,00000000 \(.*\)/boot-snap\\.vdex\$,00001000 \1/base.apk," $name/maps.txt
python3 - $interpreted/boot-snap.vdex $name/base.apk <<'END'
import sys
import zipfile
with open(sys.argv[1], "rb") as file:
    dex = file.read()[0x30:]
with zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_STORED) as apk:
    apk.writestr("padding", bytes(0x1030 - 2 * 30 - len("padding" + "classes2.dex")))
    apk.writestr("classes2.dex", dex)
END
python3 - $interpreted/output.txt >"$work/archived" <<'END'
import re
import sys
for line in open(sys.argv[1], encoding="utf-8"):
    found = re.match(r"(  #\d+ pc )([0-9a-f]+)  boot-snap\.vdex (.*)", line)
    if found:
        pc = int(found.group(2), 16) - 0x30
        line = f"{found.group(1)}{pc:016x}  base.apk!classes2.dex (offset 0x1030) {found.group(3)}\n"
    print(line, end="")
END
dex_elsewhere "stored in an archive" "$work/archived"
run stack --json --snapshot "$name"
good=0
[[ $(<"$work/out") =~ '"module_offset"'\ *:\ *'"0x1030"' && $(<"$work/out") =~ '"entry"'\ *:\ *'"classes2.dex"' ]] || good=1
result "stored in an archive --json" "$good" "$(grep -m 3 -A 4 dex "$work/out" | head -c 1000)"

# Unpacked into memory that has no file. The runtime lists where; compact dex files it lists without their data.
anonymous='[anon:dalvik-classes.dex extracted in memory from /data/app/base.apk]'
cp $name/maps.txt "$work/maps.txt"
sed -i "s,00001000 .*/base.apk\$,00000000 00:00 0 $anonymous," $name/maps.txt
python3 - $interpreted/boot-snap.vdex $name <<'END'
import struct
import sys
with open(sys.argv[1], "rb") as file:
    dex = file.read()[0x30:]
with open(sys.argv[2] + "/mem_dex.data", "wb") as file:
    file.write(struct.pack("<Q", 0x71DBC030) + dex)
with open(sys.argv[2] + "/mem_dex_entry000.data", "r+b") as file:
    assert file.read(40)[24:] == struct.pack("<QQ", 0x71DBC030, 0x270)
    file.seek(32)
    file.write(struct.pack("<Q", len(dex)))
END
sed "s,boot-snap\.vdex,$anonymous," $interpreted/output.txt >"$work/anonymous"
dex_elsewhere "in memory without a file" "$work/anonymous"
rm $name/mem_dex.data
cp "$work/maps.txt" $name/maps.txt

# In an OAT file, as in Android 7: an ELF image with the dex file in its first segment.
sed -i "/^71dbb000-/d;s,71dbc000-71dbd000 r--p 00001000 \(.*\)/base.apk\$,71dbb000-71dbd000 r--p 00000000 \1/base.odex," $name/maps.txt
echo "91dbb000-91dbc000 r-xp 00002000 fe:00 11059295 /opt/sn/outni/x86_64/base.odex" >>$name/maps.txt
python3 - $interpreted/boot-snap.vdex $name/base.odex <<'END'
import struct
import sys
with open(sys.argv[1], "rb") as file:
    dex = file.read()[0x30:]
header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
loads = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, 0x2000, 0x2000, 0x1000)
loads += struct.pack("<IIQQQQQQ", 1, 5, 0x2000, 0x20000000, 0x20000000, 0x1000, 0x1000, 0x1000)
with open(sys.argv[2], "wb") as file:
    file.write((header + loads).ljust(0x1030, b"\0") + dex.ljust(0x1FD0, b"\0"))
END
python3 - $interpreted/output.txt >"$work/inside" <<'END'
import re
import sys
for line in open(sys.argv[1], encoding="utf-8"):
    found = re.match(r"(  #\d+ pc )([0-9a-f]+)  boot-snap\.vdex (.*)", line)
    if found:
        line = f"{found.group(1)}{int(found.group(2), 16) + 0x1000:016x}  base.odex {found.group(3)}\n"
    print(line, end="")
END
dex_elsewhere "in an OAT file" "$work/inside"
finish
