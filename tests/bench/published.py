"""What the benches share that hold our seconds beside what others published."""
import json
import subprocess
import sys


def told(plimsoll, arguments, row, key):
    """The number of this name that `plimsoll explain` tells of its setting; None where it tells none, which is said."""
    done = subprocess.run([plimsoll, "explain", *arguments, "--json"], capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)["setting"][key]
    except (ValueError, KeyError, TypeError):
        print(row["id"], "cannot be told:", done.stderr.strip()[:200], file=sys.stderr)
        return None
