"""A member in front of the service's pages: plain HTTP, one cookie, the forms as they stand."""

import html
import re
import urllib.error
import urllib.parse
import urllib.request
import json
import os

URL = os.environ["CAIRN_URL"]
KEY = os.environ["CAIRN_API_KEY"]


# What stands on this machine is asked without anybody between.
_DIRECT = urllib.request.ProxyHandler({})
OPEN = urllib.request.build_opener(_DIRECT).open


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nowhere: where an answer leads is looked at."""

    def redirect_request(self, *_):
        return None


def call(method, path, body=None, bearer=KEY):
    """One call of the REST interface; its status and its JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, method=method)
    request.add_header("authorization", f"Bearer {bearer}")
    request.add_header("content-type", "application/json")
    try:
        with OPEN(request) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


def handle():
    """The member whose key the environment holds."""
    return call("GET", "/v1/me")[1]["handle"]


class Member:
    """A browser, and the member who sits in front of it."""

    def __init__(self):
        self._open = urllib.request.build_opener(_Stay(), _DIRECT)
        self._cookie = None

    def _ask(self, address, fields=None):
        data = None if fields is None else urllib.parse.urlencode(fields).encode()
        request = urllib.request.Request(address, data)
        if self._cookie:
            request.add_header("cookie", self._cookie)
        if data is not None:
            request.add_header("origin", URL)
        try:
            answer = self._open.open(request)
        except urllib.error.HTTPError as other:
            answer = other
        if answer.headers["set-cookie"]:
            self._cookie = answer.headers["set-cookie"].split(";")[0]
        return answer.status, answer.headers["location"], answer.read().decode()

    def _submit(self, address, page, fields):
        form = re.search(r"<form.*?</form>", page, re.S).group(0)
        hidden = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form)
        known = {name: html.unescape(value) for name, value in hidden}
        return self._ask(address, {**known, **fields})

    def let_in(self, address):
        """Goes to a page that asks for a yes, signs in if need be, and says yes; where the
        answer leads, or what is shown then."""
        _, _, page = self._ask(address)
        if 'name="code"' in page:
            status, made = call("POST", f"/v1/members/{handle()}/code", {})
            assert status == 201, made
            status, to, page = self._submit(
                f"{URL}/oauth/sign-in", page, {"code": made["code"]}
            )
            assert status == 303, page
            _, _, page = self._ask(urllib.parse.urljoin(URL, to))
        assert 'value="allow"' in page, page
        action = address if "/oauth/authorize" in address else f"{URL}/device"
        status, to, page = self._submit(action, page, {"decision": "allow"})
        return to or page
