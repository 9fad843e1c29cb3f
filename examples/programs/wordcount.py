"""Counts the words of all inputs; the most frequent ones are the result.

Push it with: ikada program push examples/programs/wordcount.py --name count-words -- python3 {file}
The setting `top` says how many words the result has; 10 when absent.
"""

import collections
import json
import os
import re

counts = collections.Counter()
folder = os.environ["IKADA_IN"]
names = sorted(os.listdir(folder))
for number, name in enumerate(names):
    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
        for line in file:
            counts.update(re.findall(r"[^\W\d_]+", line.lower()))
    print(f"ikada:progress {(number + 1) / len(names)} {name}")

with open(os.path.join(os.environ["IKADA_OUT"], "counts.tsv"), "w", encoding="utf-8") as file:
    for word, count in sorted(counts.items()):
        file.write(f"{word}\t{count}\n")

top = int(os.environ.get("IKADA_SETTING_TOP", "10"))
with open(os.environ["IKADA_RESULT"], "w", encoding="utf-8") as file:
    json.dump({"words": sum(counts.values()), "top": counts.most_common(top)}, file)
print(f"{len(names)} files, {sum(counts.values())} words")
