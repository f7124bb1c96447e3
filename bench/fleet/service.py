# SPDX-License-Identifier: Apache-2.0
"""A service of many libraries, without its network: requests come from a generator, are read as HTTP, and each is answered by one of
eleven handlers. It goes on until it is killed, or for so long: service.py [PROCESSOR_SECONDS]"""
import base64
import bz2
import collections
import configparser
import csv
import datetime
import decimal
import email
import fractions
import hashlib
import hmac
import html.parser
import http.server
import io
import json
import logging
import lzma
import pickle
import random
import re
import sqlite3
import statistics
import string
import sys
import textwrap
import time
import urllib.parse
import uuid
import xml.etree.ElementTree
import zlib

numbers = random.Random(1)
words = ["".join(numbers.choices(string.ascii_lowercase, k=numbers.randint(3, 11))) for _ in range(2000)]
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT, cents INTEGER, day TEXT)")
database.execute("CREATE INDEX by_name ON orders (name)")
log = logging.getLogger("service")
log.addHandler(logging.StreamHandler(io.StringIO()))
log.setLevel(logging.INFO)
template = string.Template("Dear $name, your $thing of $when is worth $price.")


def text_of(count):
    return " ".join(numbers.choices(words, k=count))


def orders(body):
    rows = [(numbers.choice(words), numbers.randrange(10000), f"2026-{numbers.randint(1, 12):02}-01") for _ in range(80)]
    database.executemany("INSERT INTO orders (name, cents, day) VALUES (?, ?, ?)", rows)
    found = database.execute("SELECT day, count(*), sum(cents) FROM orders WHERE name > ? GROUP BY day ORDER BY 3 DESC", (body["name"],)).fetchall()
    database.execute("DELETE FROM orders WHERE id < (SELECT max(id) - 3000 FROM orders)")
    return found


def prices(body):
    total = sum((decimal.Decimal(item["v"]).quantize(decimal.Decimal("0.01")) * 3 / 7 for item in body["items"]), decimal.Decimal())
    share = sum((fractions.Fraction(int(item["v"] * 100) + 1, 97) for item in body["items"][:40]), fractions.Fraction())
    return {"total": str(total), "share": str(share.limit_denominator(1000)), "spread": statistics.pstdev(item["v"] for item in body["items"])}


def page(body):
    class Reader(html.parser.HTMLParser):
        def __init__(self):
            super().__init__()
            self.tags = collections.Counter()

        def handle_starttag(self, tag, attrs):
            self.tags[tag] += 1

    reader = Reader()
    reader.feed("".join(f"<p class='{item['n']}'>{html.escape(item['n'])}<br><a href='/{item['n']}?q=1'>go</a></p>" for item in body["items"]))
    return dict(reader.tags)


def document(body):
    root = xml.etree.ElementTree.Element("items")
    for item in body["items"]:
        xml.etree.ElementTree.SubElement(root, "item", name=item["n"], value=str(item["v"])).text = text_of(3)
    again = xml.etree.ElementTree.fromstring(xml.etree.ElementTree.tostring(root))
    return len(again.findall(".//item[@name]"))


def table(body):
    out = io.StringIO()
    writer = csv.DictWriter(out, ["n", "v"])
    writer.writeheader()
    writer.writerows(body["items"])
    rows = sorted(csv.reader(io.StringIO(out.getvalue())), key=lambda row: (len(row[0]), row))
    return rows[:5]


def archive(body):
    data = json.dumps(body).encode()
    return len(zlib.compress(data)), len(bz2.compress(data)), len(lzma.compress(data[:2000], preset=0)), len(pickle.loads(pickle.dumps(body)))


def search(body):
    text = text_of(500)
    found = re.findall(r"\b([a-z])(\w*?)\1(\w*)\b", text)
    return len(found), re.sub(r"(?P<first>\w+) (?P<second>\w+)", r"\g<second> \g<first>", text)[:40], textwrap.fill(text, 60)[:60]


def session(body):
    token = base64.urlsafe_b64encode(json.dumps({"user": body["name"], "until": datetime.datetime.now().isoformat()}).encode())
    for _ in range(60):
        token = base64.b64encode(hmac.new(b"secret", token, hashlib.sha256).digest())
    return token.decode(), str(uuid.uuid5(uuid.NAMESPACE_URL, body["name"])), hashlib.pbkdf2_hmac("sha1", b"word", b"salt", 500).hex()


def mail(body):
    message = email.message_from_string(f"From: {body['name']}@example.org\nTo: all\nSubject: {text_of(4)}\n\n" + text_of(200))
    return template.substitute(name=message["From"], thing=message["Subject"], when=datetime.date.today(), price="nothing")


def settings(body):
    parser = configparser.ConfigParser()
    parser.read_string("".join(f"[{item['n']}]\nvalue = {item['v']}\nname = %(value)s of {item['n']}\n" for item in body["items"][:40]))
    return [parser[name]["name"] for name in parser.sections()][:3]


def listing(body):
    return sorted(body["items"], key=lambda item: item["v"])[:50]


# The most wanted first: the second is wanted half as often, the third a third.
HANDLERS = {handler.__name__: handler for handler in (listing, orders, search, page, session, table, document, prices, mail, archive, settings)}
SHARES = [1 / (rank + 1) for rank in range(len(HANDLERS))]


class Request(http.server.BaseHTTPRequestHandler):
    def __init__(self, data):  # no socket
        self.rfile, self.wfile = io.BytesIO(data), io.BytesIO()
        self.client_address = ("127.0.0.1", 1)
        self.handle_one_request()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        url = urllib.parse.urlsplit(self.path)
        answer = json.dumps({"answer": HANDLERS[url.path[1:]](body), "query": urllib.parse.parse_qs(url.query)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        log.info(*arguments)
        log.handlers[0].stream.truncate(0)


def main():
    until = time.process_time() + float(sys.argv[1] if len(sys.argv) > 1 else "inf")
    while time.process_time() < until:
        body = json.dumps({"name": numbers.choice(words), "items": [{"v": numbers.random(), "n": numbers.choice(words) + str(i)} for i in range(100)]})
        handler = numbers.choices(list(HANDLERS), SHARES)[0]
        Request(f"POST /{handler}?id={numbers.random()} HTTP/1.1\r\nContent-Length: {len(body)}\r\nHost: here\r\n\r\n{body}".encode())


main()
