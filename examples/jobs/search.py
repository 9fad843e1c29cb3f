"""Looks for a number with a given SHA-256 digest in its part of a range.

Found: exit code 0, and the number is the result. Not found: exit code 65, which says that trying again is pointless. With
`settle = "any"` the first task that finds it settles the job, and the others are cancelled.
"""

import hashlib
import os
import pathlib
import sys

wanted = os.environ["IKADA_SETTING_DIGEST"]
first, end = map(int, (pathlib.Path(os.environ["IKADA_IN"]) / "range").read_text().split())
for number in range(first, end):
    if hashlib.sha256(str(number).encode()).hexdigest() == wanted:
        pathlib.Path(os.environ["IKADA_RESULT"]).write_text(str(number))
        sys.exit(0)
sys.exit(65)
