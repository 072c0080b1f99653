#!/usr/bin/env python3
"""Plugins of the submission pipeline in one small service: a factor, a gate, a decorator and a life hook."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def factor(call):
    admin = call["header"].get("role") == "admin"
    return {"topic": "priority", "advice": "10" if admin else "1", "reason": "admin" if admin else "everybody"}


def gate(call):
    replicas = sum(role["replicas"] for role in call["job"]["spec"]["roles"])
    if replicas <= 4:
        return {"decision": "pass", "reason": f"{replicas} replicas are few"}
    return {"decision": "suspend", "reason": f"{replicas} replicas are many: somebody has to resume the job"}


def decorator(call):
    for role in call["job"]["spec"]["roles"]:
        for container in role["template"]["spec"]["containers"]:
            container.setdefault("env", []).append({"name": "SUBMITTED_BY", "value": call["header"]["userID"]})
    return call["job"]


def hook(event):
    print("event:", event["id"], event["current_state"], flush=True)
    return "OK"


class Plugins(BaseHTTPRequestHandler):
    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"/factor": factor, "/gate": gate, "/decorator": decorator, "/hook": hook}[self.path](call)
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain" if isinstance(answer, str) else "application/json")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *words):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 9000), Plugins).serve_forever()
