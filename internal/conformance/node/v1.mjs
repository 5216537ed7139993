// The TypeScript SDK v1: the eras up to 2025-11-25.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { story, target } from "./story.mjs";

const { url, token, command, args } = target();
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
  : new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });

const client = new Client({ name: "typescript-sdk-v1", version: "0" });
await client.connect(transport);
const session = await story({
  list: async () => (await client.listTools()).tools,
  call: (name, args) => client.callTool({ name, arguments: args }),
});
await client.close();
console.log(JSON.stringify({ session, server: client.getServerVersion() }));
