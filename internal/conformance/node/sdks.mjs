// The TypeScript SDKs by their names: each gives a connected client of the era that it is here
// for, as what a host needs of it.
import assert from "node:assert/strict";
import * as v2sdk from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

/** SDK v1 speaks the eras up to 2025-11-25. */
export async function v1(target) {
  const client = new ClientV1({ name: "typescript-sdk-v1", version: "0" });
  await client.connect(transport(HttpV1, StdioV1, target));
  return host(client, (params, options) => client.callTool(params, undefined, options));
}

/** SDK v2, held to the era of 2026-07-28. */
export async function v2(target) {
  const version = "2026-07-28";
  const client = new v2sdk.Client({ name: "typescript-sdk-v2", version: "0" }, { versionNegotiation: { mode: { pin: version } } });
  await client.connect(transport(v2sdk.StreamableHTTPClientTransport, StdioV2, target));
  assert.equal(client.getNegotiatedProtocolVersion(), version);
  return host(client, (params, options) => client.callTool(params, options));
}

const host = (client, call) => ({
  call,
  list: async () => (await client.listTools()).tools,
  close: () => client.close(),
  server: () => client.getServerVersion(),
});

/** The way to the server: {url, token} or {command, args}. */
function transport(Http, Stdio, { url, token, command, args }) {
  return url
    ? new Http(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
    : new Stdio({ command, args, env: process.env, stderr: "inherit" });
}
