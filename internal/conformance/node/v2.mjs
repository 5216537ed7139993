// The TypeScript SDK v2, held to the era of 2026-07-28.
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { story, target } from "./story.mjs";

const version = "2026-07-28";
const { url, token, command, args } = target();
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
  : new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });

const client = new Client({ name: "typescript-sdk-v2", version: "0" }, { versionNegotiation: { mode: { pin: version } } });
await client.connect(transport);
assert.equal(client.getNegotiatedProtocolVersion(), version);
const session = await story({
  list: async () => (await client.listTools()).tools,
  call: (name, args) => client.callTool({ name, arguments: args }),
});
await client.close();
console.log(JSON.stringify({ session, server: client.getServerVersion() }));
