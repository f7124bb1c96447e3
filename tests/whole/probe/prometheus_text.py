# SPDX-License-Identifier: Apache-2.0
"""A strict reader of Prometheus's text format, version 0.0.4. What its page demands, and no more, is taken."""
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
TYPES = {"counter": [""], "gauge": [""], "untyped": [""], "summary": ["", "_sum", "_count"],
         "histogram": ["_bucket", "_sum", "_count"]}


class Family:
    def __init__(self, kind):
        self.kind = kind
        self.samples = {} # (name, labels as sorted pairs) -> number


def read_value(text, at):
    """A quoted value of a label from its first quote on; what it is, and where it ends."""
    value = ""
    assert text[at] == '"', f"no quote at {at} of {text!r}"
    at += 1
    while text[at] != '"':
        if text[at] == "\\":
            at += 1
            assert text[at] in '\\"n', f"an unknown escape in {text!r}"
            value += "\n" if text[at] == "n" else text[at]
        else:
            value += text[at]
        at += 1
    return value, at + 1


def read_labels(text):
    labels, at = {}, 1
    while text[at] != "}":
        name = LABEL.match(text, at)
        assert name and not name.group().startswith("__"), f"no label at {at} of {text!r}"
        assert text[name.end()] == "=" and name.group() not in labels, f"{name.group()} in {text!r}"
        labels[name.group()], at = read_value(text, name.end() + 1)
        if text[at] == ",":
            at += 1
        else:
            assert text[at] == "}", f"{text[at]!r} in {text!r}"
    return labels, text[at + 1:]


def check_histogram(name, family):
    series = {}
    for (sample, labels), number in family.samples.items():
        own = dict(labels)
        bound = own.pop("le", None)
        entry = series.setdefault(tuple(sorted(own.items())), {"buckets": []})
        if sample == name + "_bucket":
            entry["buckets"].append((float(bound), number))
        else:
            entry[sample[len(name):]] = number
    bounds = {tuple(bound for bound, _ in entry["buckets"]) for entry in series.values()}
    assert len(bounds) <= 1, f"{name} has other buckets for other labels: {bounds}"
    for labels, entry in series.items():
        buckets = entry["buckets"]
        assert buckets == sorted(buckets) and len({bound for bound, _ in buckets}) == len(buckets), (name, labels)
        assert [count for _, count in buckets] == sorted(count for _, count in buckets), (name, labels, buckets)
        assert buckets[-1][0] == float("inf") and buckets[-1][1] == entry["_count"] and "_sum" in entry, (name, labels)


def read(text):
    """Families by name. AssertionError: it is no such document."""
    families, helped, family, of = {}, set(), None, None
    assert text == "" or text.endswith("\n"), "the last line does not end"
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, said = line[7:].partition(" ")
            assert NAME.fullmatch(name) and name not in helped and name not in families, line
            assert not re.search(r"\\[^\\n]", said), line
            helped.add(name)
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert NAME.fullmatch(name) and kind in TYPES and name not in families, line
            family, of = Family(kind), name
            families[name] = family
        elif line and not line.startswith("#"):
            name = NAME.match(line).group()
            rest = line[len(name):]
            labels, rest = read_labels(rest) if rest.startswith("{") else ({}, rest)
            assert family and name in [of + ending for ending in TYPES[family.kind]], f"{line!r} is not of {of}"
            key = (name, tuple(sorted(labels.items())))
            assert key not in family.samples, f"twice: {line!r}"
            assert ("le" in labels) == name.endswith("_bucket") or family.kind != "histogram", line
            family.samples[key] = float(rest)
    for name, family in families.items():
        if family.kind == "histogram":
            check_histogram(name, family)
        if family.kind == "counter":
            assert name.endswith("_total"), name
    return families
