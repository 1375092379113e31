#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the documents say what is so? Prints each breach as FILE: WHAT and fails.

docs.py score             the tables of docs/architecture.md are those of runtime/score.c and container/score.c
docs.py tests             each test and path that docs/threat-model.md names is there
docs.py links             no relative link leads nowhere
docs.py options HELP      each option in the text HELP (agentdock run --help) is in agentdock.1 and the other way round
docs.py audit HELP        the same of agentdock audit --help and agentdock-audit.1
docs.py oci               the table of docs/oci.md has each key of tests/data/oci/full.json, and tests that are there
docs.py verbs PROGRAM     its table of options and agentdock-runtime.8 have each that PROGRAM tells of, and no other
docs.py escapes LIST      each attack of LIST (agentdock audit --list --json) has its row in docs/threat-model.md, and no other
"""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


# where a score is played, and the heading of the page's table of it
SCORES = {"runtime/score.c": "## The score\n", "container/score.c": "## The score of a container\n"}


def score():
    doc = "docs/architecture.md"
    for path, heading in SCORES.items():
        table = re.search(r"const struct \w+ score\[\] = \{(.*?)\n\};", text(path), re.S).group(1)
        code = re.findall(r'\{\s*"([^"]+)",\s*(\w+),\s*(\w+),\s*(\w+)\s*\}', table)
        page = re.split(r"\n##", (text(doc) + heading).split(heading)[1])[0]
        rows = re.findall(r"^\| ([^|]+?) \| *`?(\w*)`? *\| *`?(\w*)`? *\| *(.*?) *\|$", page, re.M)
        want = [(n, o.replace("NULL", ""), i.replace("NULL", ""), w != "NULL") for n, o, i, w in code]
        # the heading is no row
        have = [(n, o, i, bool(w)) for n, o, i, w in rows if n != "row"]
        if not want:
            yield path, "no rows found"
        for row in want:
            if row not in have:
                yield doc, f"the table of {path} lacks {row}"
        for row in have:
            if row not in want:
                yield doc, f"{row} is no row of {path}"
        if not set(want) ^ set(have) and want != have:
            yield doc, f"the rows of {path} are in another order"


def named_in(file, names):
    """What is left of NAMES ("a; b" of a .bats, "a, b" of a .c) when the tests of FILE are taken away."""
    if file.endswith(".c"):
        code = text("tests/unit/" + file)
        return ", ".join(n for n in names.split(", ") if not re.search(rf"\b{re.escape(n)}\b", code))
    path = f"tests/{file}" if "/" in file else f"tests/cli/{file}"
    tests = re.findall(r'^@test "(.*)" \{', text(path), re.M)
    for test in sorted(tests, key=len, reverse=True):
        # remarks in brackets are for those who read the test
        names = names.replace(re.sub(r" \([^()]*\)$", "", test), "")
    return names.strip("; ")


def tests():
    doc, seen = "docs/threat-model.md", 0
    for line in text(doc).splitlines():
        cells = [c.strip() for c in line.strip("|").split(" | ")]
        # rows that begin with a name are those of escapes
        if len(cells) != 4 or cells[0] in ("attack", "---") or cells[0].startswith("`"):
            continue
        for path in re.findall(r"`([a-z_]+/[^` ]*)`", cells[2]):
            if not os.path.exists(os.path.join(ROOT, path)):
                yield doc, f"{path}: no such file"
        parts = re.split(r"(?:^|; )((?:oci/)?[a-z_]+\.(?:bats|c)): ", cells[3])
        if len(parts) < 3:
            yield doc, f"{cells[0]}: names no test"
        for file, names in zip(parts[1::2], parts[2::2]):
            seen += 1
            try:
                left = named_in(file, names)
            except FileNotFoundError:
                left = "this file"
            if left:
                yield doc, f"{file} has no test: {left}"
    if not seen:
        yield doc, "no tests found"


def links():
    pages = ["README.md"] + [f"docs/{f}" for f in sorted(os.listdir(f"{ROOT}/docs")) if f.endswith(".md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#\s]+)", text(page)):
            if not re.match(r"[a-z]+://", link) and not os.path.exists(
                    os.path.join(ROOT, os.path.dirname(page), link)):
                yield page, f"{link}: no such file"


def listed_in(page, section, listed):
    described = set(re.findall(r"^\.It (?:Fl \w , )?Fl Fl ([a-z-]+)", section, re.M))
    if not listed:
        yield "--help", "no options found"
    for option in sorted(listed - described):
        yield page, f"--{option} is not described"
    for option in sorted(described - listed):
        yield page, f"--{option} is no option"


def options(help_text):
    page = "docs/man/agentdock.1"
    section = text(page).split(".Ss Options of run")[1].split(".Sh ENVIRONMENT")[0]
    text_of_options = help_text.split("Variables that")[0]
    return listed_in(page, section, set(re.findall(r"^ +(?:-\w, |    )?--([a-z-]+)", text_of_options, re.M)))


def audit(help_text):
    page = "docs/man/agentdock-audit.1"
    return listed_in(page, text(page), set(re.findall(r"^  --([a-z-]+)", help_text, re.M)))


# objects of a config.json that are maps: their names are those of things
OCI_MAPS = {"annotations", "linux.sysctl", "linux.netDevices", "linux.resources.unified", "linux.resources.rdma"}
# objects whose members are all alike
OCI_ALIKE = {"hooks", "linux.timeOffsets"}


def oci_keys(value, path=""):
    """(object, key) of each key in VALUE, with a * for names and for members that are alike."""
    for item in value if isinstance(value, list) else []:
        yield from oci_keys(item, path)
    for key, item in value.items() if isinstance(value, dict) else []:
        inner = f"{path}.*" if path in OCI_MAPS | OCI_ALIKE else f"{path}.{key}".lstrip(".")
        if path not in OCI_MAPS:
            yield path, key
        yield from oci_keys(item, inner)


def rows_of(page, heading):
    """The rows of the table below HEADING, without its own head; each as its cells."""
    lines = re.findall(r"^\|(.*)\|$", re.split(r"\n## ", (page + heading).split(heading)[1])[0], re.M)
    return [[cell.strip() for cell in line.split("|")] for line in lines][2:]


def oci():
    doc, code = "docs/oci.md", "".join(text(f"tests/unit/test_oci_{f}.c") for f in ("config", "rules", "relations"))
    want, have = set(oci_keys(json.loads(text("tests/data/oci/full.json")))), set()
    for row in rows_of(text(doc), "## config.json\n"):
        paths = re.findall(r"`(.*?)`", row[0]) or [""]
        have |= {(path, key) for path in paths for key in re.findall(r"`(.*?)`", row[1])}
        if not re.findall(r"`(.*?)`", row[-1]):
            yield doc, f"{row[0]}: names no test"
    for path, key in sorted(want - have):
        yield doc, f"lacks {key} of {path or 'the document'}"
    for path, key in sorted(have - want):
        yield doc, f"{key} of {path or 'the document'} is not in full.json"
    for test in sorted(set(re.findall(r"`(test_[a-z_]+)`", text(doc)))):
        if f"cmocka_unit_test({test})" not in code:
            yield doc, f"{test}: no such test"


def verbs(program):
    doc, have, want = "docs/oci.md", set(), set()

    def told_by(*verb):
        told = subprocess.run([program, *verb, "--help"], check=True, capture_output=True, text=True).stdout
        return set(re.findall(r"^  (?:-\w, |    )--([a-z0-9-]+)", told.split("options", 1)[1], re.M)) - {"help"}

    for of, option, ours, *_ in rows_of(text(doc), "## Verbs and options\n"):
        if ours == "yes" and of != "each":
            have |= {(verb, name) for verb in of.split(", ") for name in re.findall(r"`--([a-z0-9-]+)", option)}
    want = {("before the verb", name) for name in told_by()}
    usage = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    for verb in re.findall(r"^  ([a-z]+) ", usage.split("verbs:")[1].split("\n\n")[0], re.M):
        want |= {(verb, name) for name in told_by(verb)}
        if f"`{verb}" not in text(doc):
            yield doc, f"does not speak of {verb}"
    manual = text("docs/man/agentdock-runtime.8").split(".Sh OPTIONS BEFORE")[1].split(".Sh ENVIRONMENT")[0]
    described = {name for line in re.findall(r"^\.It Fl .*", manual, re.M) for name in re.findall(r"Fl Fl ([a-z0-9-]+)", line)}
    for name in sorted({name for _, name in want} ^ described - {"help"}):
        yield "docs/man/agentdock-runtime.8", f"--{name} is not described, or is no option"
    for of, name in sorted(want - have):
        yield doc, f"lacks --{name} of {of}"
    for of, name in sorted(have - want):
        yield doc, f"--{name} is no option of {of}"


def escapes(list_json):
    doc = "docs/threat-model.md"
    want = [f"| `{a['attack']}` | {a['what']} | {a['wall']} | {a['seen']} |" for a in json.loads(list_json)]
    have = [row for row in text(doc).splitlines() if re.match(r"\| `[a-z0-9_]+` \|", row)]
    if not want:
        yield "agentdock audit --list", "no attacks found"
    for row in want:
        if row not in have:
            yield doc, f"lacks the row {row}"
    for row in have:
        if row not in want:
            yield doc, f"is of no attack: {row}"
    for file in sorted(os.listdir(os.path.join(ROOT, "tests/escape"))):
        if file.endswith(".c") and "\nATTACK(" in text("tests/escape/" + file) and f"| `{file[:-2]}` |" not in "\n".join(want):
            yield "tests/escape/" + file, "the attack is not in agentdock audit --list by the name of its file"


def main():
    checks = {"score": score, "tests": tests, "links": links, "options": options, "audit": audit,
              "oci": oci, "verbs": verbs, "escapes": escapes}
    breaches = list(checks[sys.argv[1]](*sys.argv[2:]))
    for file, what in breaches:
        print(f"{file}: {what}")
    sys.exit(1 if breaches else 0)


main()
