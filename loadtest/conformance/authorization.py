"""Runs `conformance authorization` against the service. The suite prints an address for a person
to open; a member opens it here, lets the suite in, and brings the answer back to it."""

import re
import socket
import subprocess
import sys
import urllib.request

from pages import URL, Member, call

SUITE = sys.argv[1]


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
            urllib.request.urlopen(leads_to).read()
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
        # What is skipped has shown nothing.
        failed |= status != 0 or re.search(r"skip|fail(?!ed: 0|ures?: 0)", summary(output), re.I) is not None
    sys.exit(1 if failed else 0)


def summary(output):
    """The lines that count results, without those that have nothing to count."""
    lines = [line for line in output.splitlines() if re.search(r"passed|failed|skipped", line, re.I)]
    return "\n".join(re.sub(r"\b0 (failed|skipped|warnings?)\b", "", line) for line in lines)


main()
