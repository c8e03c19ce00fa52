"""What the benches share that hold our seconds beside what others published."""
import json
import subprocess
import sys


def told(plimsoll, arguments, row):
    """What `plimsoll explain` tells, where it tells of a rate; None where it does not, which is said."""
    done = subprocess.run([plimsoll, "explain", *arguments, "--json"], capture_output=True, text=True, check=False)
    try:
        explanation = json.loads(done.stdout)
        return explanation if explanation["setting"]["samples_per_second"] > 0 else None
    except (ValueError, KeyError, TypeError):
        print(row["id"], "cannot be told:", done.stderr.strip()[:200], file=sys.stderr)
        return None
