"""The client of this repository signs in from a terminal, renews its sign-in in many processes at
once, and signs out."""

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone

from pages import URL, Member, call

CAIRN = sys.argv[1]


def run(home, *arguments):
    done = subprocess.run(
        [CAIRN, *arguments], env=environment(home), cwd=home, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def environment(home):
    # As over ssh: no screen, and nothing of the caller's account.
    return {"HOME": home, "PATH": os.environ["PATH"], "CAIRN_URL": URL, "SSH_TTY": "/dev/pts/0"}


def sign_in(home):
    login = subprocess.Popen(
        [CAIRN, "login"], env=environment(home), cwd=home, stdout=subprocess.PIPE, text=True
    )
    for line in login.stdout:
        found = re.match(r"Or open (\S+)", line)
        if found:
            shown = Member().let_in(found.group(1))
            assert "It is in" in shown, shown
        if line.startswith("Signed in"):
            print(line.strip())
    assert login.wait() == 0


def main():
    with tempfile.TemporaryDirectory() as home:
        sign_in(home)
        kept = os.path.join(home, ".config/cairn/credentials.json")
        assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
        status, text = run(home, "whoami")
        assert status == 0 and "Signed in until" in text, text
        status, text = run(home, "status")
        assert "signed in as" in text, text
        tokens = lambda: json.load(open(kept))["services"][URL]["tokens"]
        for _ in range(3):
            over(kept)
            before = tokens()["refresh"]
            many = [
                subprocess.Popen([CAIRN, "whoami"], env=environment(home), cwd=home, stdout=subprocess.DEVNULL)
                for _ in range(12)
            ]
            assert [one.wait() for one in many] == [0] * 12
            assert tokens()["refresh"] != before
        access = tokens()["access"]
        assert call("GET", "/v1/me", bearer=access)[0] == 200
        status, text = run(home, "logout")
        assert status == 0, text
        # Each replica may believe what it has seen for a few seconds more.
        end = time.monotonic() + 10
        while any(call("GET", "/v1/me", bearer=access)[0] != 401 for _ in range(2)):
            assert time.monotonic() < end, "the sign-in outlived its end"
        assert run(home, "whoami")[0] == 3
    print("the terminal: signed in, renewed by twelve processes at once, signed out")


def over(kept):
    """Makes the kept token look as if its time had come."""
    credentials = json.load(open(kept))
    past = datetime.now(timezone.utc) - timedelta(seconds=1)
    credentials["services"][URL]["tokens"]["until"] = past.isoformat()
    with open(kept, "w") as file:
        json.dump(credentials, file)


main()
