// A host in the hands of a script: it does what the lines of its input say, with the SDK that
// its command line names, and answers each with a line. Calls run at once, so that one can wait
// while others go on.
//
//   {"id": 1, "do": "connect", "target": {"url", "token"}}  anew, whatever was open before
//   {"id": 2, "do": "tools"}                                the names and input schemas of the list
//   {"id": 3, "do": "call", "name", "arguments", "meta"}    one tool
//
//   {"id": 3, "result": …}  or  {"id": 3, "error": "…"}, and before it {"id": 3, "progress": true}
import { createInterface } from "node:readline";
import * as sdks from "./sdks.mjs";

const connect = sdks[process.argv[2]];
let client;

const deeds = {
  async connect({ target }) {
    const before = client;
    client = undefined;
    await before?.close().catch(() => {});
    client = await connect(target);
    return {};
  },
  tools: () => client.list(),
  call: ({ name, arguments: args, meta }, onprogress) =>
    client.call({ name, arguments: args, _meta: meta }, { timeout: 90_000, onprogress }),
};

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  const progress = () => say({ id: order.id, progress: true });
  Promise.resolve()
    .then(() => deeds[order.do](order, progress))
    .then(
      (result) => say({ id: order.id, result }),
      (error) => say({ id: order.id, error: String(error?.message ?? error) }),
    );
}
await client?.close().catch(() => {});
