// Drives the real AG-UI client. Each line of the input is a client with its steps, each line of the output what it holds
// after them: {threadId, messages?, state?, steps: [{body} | {url, method, cutAfter?, ...}]}.
//
// A step is a run (POST) or a connection (GET). With `body` the response is that text; with `url` it is fetched. The
// connection breaks after `cutAfter` bytes, and the next GET sends the id of the last frame that came whole.

import { createInterface } from "node:readline";
import { HttpAgent, runHttpRequest, transformHttpEventStream } from "@ag-ui/client";

class Client extends HttpAgent {
  lastEventId = undefined;

  // What a client that can resume has to add: the protocol leaves it open.
  connect() {
    const headers = { ...this.headers, Accept: "text/event-stream" };
    if (this.lastEventId !== undefined) headers["Last-Event-ID"] = this.lastEventId;
    return transformHttpEventStream(runHttpRequest(() => this.fetch(this.url, { headers })));
  }
}

function watched(client, response, cutAfter) {
  const decoder = new TextDecoder();
  let text = "";
  let passed = 0;
  const watch = new TransformStream({
    async transform(bytes, controller) {
      const room = cutAfter === undefined ? bytes.length : Math.max(0, cutAfter - passed);
      const piece = bytes.subarray(0, room);
      passed += piece.length;
      text += decoder.decode(piece, { stream: true });
      const frames = text.split("\n\n");
      text = frames.pop();
      for (const frame of frames) client.lastEventId = frame.match(/^id: (.*)$/m)?.[1] ?? client.lastEventId;
      if (piece.length > 0) controller.enqueue(piece);
      if (cutAfter === undefined || passed < cutAfter) return;
      // An error overtakes what the client has not applied yet, and the id would be of something that it never had.
      await new Promise((resolve) => setTimeout(resolve, 5));
      controller.error(new Error("cut"));
    },
  });
  return new Response(response.body?.pipeThrough(watch), { status: response.status, headers: response.headers });
}

async function follow({ threadId, messages = [], state = {}, steps }) {
  const warnings = [];
  console.warn = (...words) => warnings.push(words.join(" "));
  console.error = () => {};
  const client = new Client({ url: "http://unused", threadId, initialMessages: messages, initialState: state });
  const held = { errors: [], finished: [], runErrors: [] };
  const subscriber = {
    onRunFinishedEvent: ({ outcome, pendingToolCallIds }) => {
      held.finished.push({ outcome, pending: pendingToolCallIds ?? [] });
    },
    onRunErrorEvent: ({ event }) => {
      held.runErrors.push(event.code ?? null);
    },
  };
  for (const { url, body, method = "GET", cutAfter, lastEventId, headers = {}, ...parameters } of steps) {
    client.url = url ?? client.url;
    client.headers = headers;
    client.lastEventId = lastEventId ?? client.lastEventId;
    client.fetch = async (target, request) => {
      if (body !== undefined && cutAfter === undefined) return new Response(body);
      const response = body === undefined ? await fetch(target, request) : new Response(body);
      return response.ok ? watched(client, response, cutAfter) : response;
    };
    try {
      await (method === "POST" ? client.runAgent(parameters, subscriber) : client.connectAgent(parameters, subscriber));
    } catch (error) {
      held.errors.push(error.message);
    }
  }
  const { lastEventId, pendingInterrupts } = client;
  return { ...held, messages: client.messages, state: client.state, pendingInterrupts, lastEventId, warnings };
}

process.on("unhandledRejection", () => {});
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await follow(JSON.parse(line)))}\n`);
}
