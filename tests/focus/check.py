#!/usr/bin/env python3
"""Checks what `poolwright report -o focus` prints with focus-validator 1.0.0: the part of FOCUS 1.3 that 1.0 has.

Use: check.py PROGRAM, with the Python of `tests/tools.py focus-validator`.
"""

import csv
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# The validator has names for these columns that no version of FOCUS has.
NAMES = {"InvoiceIssuerName": "InvoiceIssuer", "ProviderName": "Provider", "PublisherName": "Publisher", "ResourceId": "ResourceID"}
# This rule asks for the column ChargeType, which FOCUS 1.0 does not have, so it fails for every file.
BROKEN = {"SkuPriceId_Nullable"}
# The rules of 1.0 that the validator has.
RULES = 133


def main(program: str) -> int:
    printed = subprocess.run(
        [program, "report", "--ledger", "fixtures/ledger", "--from", "2026-11-01", "--to", "2026-11-03", "-o", "focus"],
        cwd=ROOT, env=os.environ | {"POOLWRIGHT_TODAY": "2026-11-30"}, stdout=subprocess.PIPE, text=True, check=True).stdout
    header, *lines = list(csv.reader(printed.splitlines()))
    with tempfile.TemporaryDirectory() as folder:
        data, result = Path(folder, "focus.csv"), Path(folder, "result.xml")
        with open(data, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([[NAMES.get(name, name) for name in header], *lines])
        validate(data, result)
        cases = list(xml.parse(result).getroot().iter("testcase"))
    failed = {failure.get("name"): failure.get("message") for case in cases for failure in case}
    for name in sorted(failed.keys() - BROKEN):
        print(f"{name}: {failed[name]}")
    if len(cases) != RULES or not lines:
        print(f"{len(cases)} rules were checked on {len(lines)} lines, and {RULES} are expected")
        return 1
    print(f"{len(lines)} lines, {len(cases)} rules, {len(failed.keys() - BROKEN)} broken")
    return 1 if failed.keys() - BROKEN else 0


def validate(data: Path, result: Path) -> None:
    """Validates a file. The validator looks for its list of currencies below the current folder."""
    import focus_validator
    os.chdir(Path(focus_validator.__file__).parent.parent)
    from focus_validator.validator import Validator
    Validator(data_filename=str(data), output_destination=str(result), output_type="unittest", rules_version="1.0").validate()


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve())))
