#!/usr/bin/env python3
"""Counts phrases in comments, log and error messages, console texts and Markdown that slow a reader of technical English.

usage: words.py [--worst N] [--limit N] [PATH...]     (default: the current tree)

Prints the number of hits and the rate per 1,000 sentences, for each rule. With --limit it also prints them for each top-level folder
and each package. --worst prints the N
places with most hits. --limit fails if a folder has a higher rate and more than one hit. Tests are counted as other files. A rule is a
hint, not a verdict: a sentence that reads well may stay (docs/style.md).
"""
import argparse, os, re, sys
from collections import Counter, defaultdict

RULES = [
    ("clause as subject", r"(?:^|[.;:] )(?:What|Who|Whoever|Whatever|Whose|Where it|That which)\b(?![^.?!]*\?)"),
    ("'who' or 'what' as a noun", r"\b(?:for|of|to|by|from|with|behind|beside|and|but|than) (?:who|whoever|whom it|what|whose)\b(?! (?:is|are|was|to|if|kind|type))"),
    ("'is what', 'is who', 'is how'", r"\b(?:is|are|was) (?:what|who|whose|how|where|as (?:it|they) (?:is|are|was))\b"),
    ("'is no', 'are no' for 'is not a'", r"\b(?:is|are|was|were) no (?!longer|more|such|op\b)[a-z]"),
    ("somebody, nobody, anybody, everybody", r"\b(?:some|no|any|every)body\b"),
    ("'of which', 'by which', 'in which', ...", r"\b(?:of|by|in|from|behind|below|for|to) which\b"),
    ("lies, stands, goes, comes, lets for plain verbs", r"\b(?:lies|lie|stands|stand) (?:in|at|below|beside|behind|there|once|on|for)\b|\bgoes (?:by|on|with|there|for)\b|\bcome(?:s)? (?:to be|down to|of it)\b|\bleads? (?:to it|there|here)\b"),
    ("take back, give back, let go, put in force", r"\btak(?:e|es|en|ing) (?:it )?back\b|\btook back\b|\bgiv(?:e|es|en|ing) back\b|\blet(?:s)? go\b|\bput in force\b|\bcalled off\b"),
    ("'is said', 'is told', 'says so', 'tells of'", r"\b(?:is|are|was|were) (?:said|told)\b|\bsa(?:y|ys|id) so\b|\btell(?:s)? of\b|\bsays (?:whether|which|what|how)\b"),
    ("'as ... as' chains, 'so many', 'as long ago'", r"\bso many\b|\bas long ago\b|\bat the most\b|\bsome [0-9]"),
    ("', too'", r", too\b"),
    ("sentences over 40 words", None),
]
COMPILED = [(n, re.compile(p)) for n, p in RULES if p]


def texts(path):
    try:
        src = open(path, encoding="utf-8", errors="replace").read()
    except OSError:
        return
    if path.endswith(".md"):
        src = re.sub(r"```.*?```", "", src, flags=re.S)
        para, at = [], 1
        for i, line in enumerate(src.split("\n"), 1):
            if line.startswith(("    ", "#")) or not line.strip():
                if para: yield at, " ".join(para)
                para, at = [], i + 1
                continue
            if line.startswith(("|", "- ", "* ")):
                if para: yield at, " ".join(para)
                para, at = [], i
                if line.startswith("|"):
                    for cell in line.strip("|\n ").split("|"): yield i, cell.strip()
                    continue
            para.append(re.sub(r"`[^`]*`", "X", line.strip(" -*")))
        if para: yield at, " ".join(para)
        return
    block, at = [], 0
    for i, line in enumerate(src.split("\n"), 1):
        m = re.match(r"\s*//+ ?(.*)", line)
        if m and not m.group(1).startswith(("go:", "nolint", "+build")):
            if not block: at = i
            block.append(m.group(1))
            continue
        if block: yield at, " ".join(block); block = []
        m = re.search(r"\s// (.*)$", line)
        if m and '"' not in m.group(1): yield i, m.group(1)
        for s in re.findall(r'"((?:[^"\\]|\\.){18,})"', line):
            if " " in s and not s.startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "http")): yield i, s
        if path.endswith((".tsx", ".ts")):
            for s in re.findall(r">([A-Z][^<>{}]{12,})<", line): yield i, s
    if block: yield at, " ".join(block)


def files(roots):
    for root in roots:
        if os.path.isfile(root):
            yield root
        for folder, below, names in os.walk(root):
            below[:] = [x for x in below if x not in SKIPPED and not x.startswith(".")]
            for name in names:
                if name.endswith((".go", ".ts", ".tsx", ".md")) and not name.endswith(("_gen.go", ".pb.go", ".d.ts")):
                    yield os.path.normpath(os.path.join(folder, name))


SKIPPED = ("node_modules", "testdata", "vendor", "npm", "bundle", "dist", "bin")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--worst", type=int, default=0)
    ap.add_argument("--limit", type=float, default=0)
    ap.add_argument("paths", nargs="*", default=["."])
    a = ap.parse_args()
    hits, sentences, places = Counter(), 0, []
    folder_hits, folder_sentences = Counter(), Counter()
    for path in files(a.paths):
        folders = {os.path.dirname(path) or ".", path.split(os.sep)[0]}
        for line, text in texts(path):
            for s in re.split(r"(?<=[.!?;])\s+(?=[A-Z])", text):
                if len(s.split()) < 3:
                    continue
                here = [n for n, rx in COMPILED for _ in rx.findall(s)]
                if len(s.split()) > 40:
                    here.append("sentences over 40 words")
                sentences += 1
                hits.update(here)
                for folder in folders:
                    folder_sentences[folder] += 1
                    folder_hits[folder] += len(here)
                if here:
                    places.append((len(here), path, line, s[:160]))
    print("sentences %d" % sentences)
    for n, _ in RULES:
        print("%7.1f per 1,000  %6d  %s" % (1000 * hits[n] / max(sentences, 1), hits[n], n))
    print("%7.1f per 1,000  %6d  all" % (1000 * sum(hits.values()) / max(sentences, 1), sum(hits.values())))
    failed = False
    if a.limit:
        print("top-level folders and packages, at most %g per 1,000:" % a.limit)
        for folder in sorted(folder_sentences, key=lambda x: (os.sep in x, x)):
            rate = 1000 * folder_hits[folder] / folder_sentences[folder]
            over = rate > a.limit and folder_hits[folder] > 1
            failed |= over
            print("%7.1f per 1,000  %6d of %6d  %s%s" % (rate, folder_hits[folder], folder_sentences[folder], folder,
                                                         ": more than %g" % a.limit if over else ""))
    places.sort(key=lambda x: -x[0])
    for k, p, l, s in places[: a.worst]:
        print("%d %s:%d %s" % (k, p, l, s))
    sys.exit(failed)


if __name__ == "__main__":
    main()
