// The MCP Inspector's command line, one process for each request, in the era that was asked for.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { story, target } from "./story.mjs";

const run = promisify(execFile);
const { url, token, command, args, era } = target();
const manifest = createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json");
const inspector = join(dirname(manifest), "clients/launcher/build/index.js");

const dir = await mkdtemp(join(tmpdir(), "inspector-"));
const config = join(dir, "mcp.json");
const server = url
  ? { type: "streamable-http", url, headers: { Authorization: `Bearer ${token}` }, protocolEra: era }
  : { type: "stdio", command, args, protocolEra: era };
await writeFile(config, JSON.stringify({ mcpServers: { webcodex: server } }), { mode: 0o600 });

/** One request; the Inspector answers with one JSON object and says by its status how it went. */
async function inspect(...more) {
  const argv = [inspector, "--cli", "--config", config, "--server", "webcodex", "--format", "json", "--quiet", ...more];
  const { stdout } = await run(process.execPath, argv, {
    env: { ...process.env, HOME: dir, MCP_STORAGE_DIR: dir },
    maxBuffer: 16 << 20,
  });
  const answer = JSON.parse(stdout);
  return answer.result ?? answer;
}

try {
  const session = await story({
    // --strict fails on a schema that some host cannot read.
    list: async () => (await inspect("--method", "tools/list", "--strict")).tools,
    call: (name, args) => inspect("--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args)),
  });
  console.log(JSON.stringify({ session }));
} finally {
  await rm(dir, { recursive: true });
}
