"""Runs `conformance authorization` against the service. The suite prints an address for a person
to open; a member opens it here, lets the suite in, and brings the answer back to it."""

import re
import socket
import subprocess
import sys

from pages import OPEN, URL, Member, call

SUITE = sys.argv[1]
# What the suite checks: two of the metadata, one of a code's way to tokens.
CHECKS = 3


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(arguments):
    """One run; its lines, and its exit status."""
    suite = subprocess.Popen(
        [SUITE, "authorization", "--url", URL, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    for line in suite.stdout:
        lines.append(line)
        if re.match(r"https?://\S+/oauth/authorize\?", line):
            leads_to = Member().let_in(line.strip())
            OPEN(leads_to).read()
    return "".join(lines), suite.wait()


def main():
    failed = False
    for resource in [[], ["--resource", f"{URL}/mcp"]]:
        port = free_port()
        redirect = f"http://127.0.0.1:{port}/callback"
        status, known = call("POST", "/oauth/register", {"redirect_uris": [redirect]})
        assert status == 201, known
        output, status = run(
            ["--client-id", known["client_id"], "--port", str(port), *resource]
        )
        print(output)
        passed = re.search(r"^Total: (\d+) passed, 0 failed", output, re.M)
        # A check that is skipped is not counted, and has shown nothing.
        failed |= status != 0 or passed is None or int(passed.group(1)) < CHECKS
    sys.exit(1 if failed else 0)


main()
