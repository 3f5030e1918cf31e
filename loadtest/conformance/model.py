"""A model that agents may think is one: it calls the first tool of memory that it is offered, and
repeats what the tool said. It speaks what three families of agents speak, over loopback."""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

# How each family names the search of the server `mem`.
TOOL = re.compile(r"^(mcp__mem__|mem_)?mem_search$")


class Model:
    def __init__(self, query):
        self.query = query
        # What tools said, as it came to the model.
        self.heard = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.answer_json({"data": [{"id": "mock", "object": "model"}], "models": []})

            def do_HEAD(self):
                self.answer_json({})

            def do_POST(self):
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                path = self.path.split("?")[0]
                if path.endswith("/messages"):
                    self.answer_events(model.messages(body), body)
                elif path.endswith("/responses"):
                    self.answer_events(model.responses(body), body)
                elif path.endswith("/chat/completions"):
                    self.answer_events(model.completions(body), body)
                elif path.endswith("/count_tokens"):
                    self.answer_json({"input_tokens": 10})
                else:
                    self.answer_json({})

            def answer_json(self, value):
                self.send("application/json", json.dumps(value).encode())

            def answer_events(self, events, _):
                text = "".join(
                    (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
                    for event in events
                )
                if "choices" in events[0]:
                    text += "data: [DONE]\n\n"
                self.send("text/event-stream", text.encode())

            def send(self, kind, data):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def hear(self, text):
        self.heard.append(text)
        return f"The memory says: {text}"

    def messages(self, body):
        """Anthropic's messages, streamed."""
        results = [
            block
            for message in body.get("messages", [])
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        tools = [tool["name"] for tool in body.get("tools", []) if TOOL.match(tool["name"])]
        if results:
            block, delta = said(self.hear(json.dumps(results[-1]["content"])))
        elif tools:
            block = {"type": "tool_use", "id": "toolu_1", "name": tools[0], "input": {}}
            arguments = json.dumps({"query": self.query})
            delta = {"type": "input_json_delta", "partial_json": arguments}
        else:
            block, delta = said("ok")
        reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"),
            "content": [], "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": 1},
            },
            {"type": "message_stop"},
        ]

    def responses(self, body):
        """OpenAI's responses, streamed."""
        results = [one for one in body.get("input", []) if one.get("type") == "function_call_output"]
        if results:
            item = spoken(self.hear(json.dumps(results[-1]["output"])))
        elif "mem_search" in json.dumps(body.get("tools", [])):
            item = {
                "type": "function_call", "id": "fc_1", "call_id": "call_1", "namespace": "mcp__mem",
                "name": "mem_search", "arguments": json.dumps({"query": self.query}),
            }
        else:
            item = spoken("ok")
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return [
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}},
        ]

    def completions(self, body):
        """OpenAI's chat completions, streamed."""
        results = [one for one in body.get("messages", []) if one["role"] == "tool"]
        tools = [tool["function"]["name"] for tool in body.get("tools", [])]
        tools = [name for name in tools if TOOL.match(name)]
        if results:
            delta = {"role": "assistant", "content": self.hear(json.dumps(results[-1]["content"]))}
        elif tools:
            call = {"name": tools[0], "arguments": json.dumps({"query": self.query})}
            called = [{"index": 0, "id": "call_1", "type": "function", "function": call}]
            delta = {"role": "assistant", "tool_calls": called}
        else:
            delta = {"role": "assistant", "content": "ok"}
        reason = "tool_calls" if "tool_calls" in delta else "stop"
        part = lambda delta, reason: {
            "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "mock",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return [part(delta, None), {**part({}, reason), "usage": usage}]


def said(text):
    return {"type": "text", "text": ""}, {"type": "text_delta", "text": text}


def spoken(text):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "m_1", "role": "assistant", "content": content}
