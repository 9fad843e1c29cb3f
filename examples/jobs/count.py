"""Counts the words of all inputs; `merge` puts such counts together."""

import collections
import os
import pathlib
import re

counts = collections.Counter()
for path in sorted(pathlib.Path(os.environ["IKADA_IN"]).iterdir()):
    counts.update(re.findall(r"[a-z0-9']+", path.read_text(errors="replace").lower()))
lines = [f"{word}\t{count}\n" for word, count in sorted(counts.items())]
(pathlib.Path(os.environ["IKADA_OUT"]) / "counts.tsv").write_text("".join(lines))
