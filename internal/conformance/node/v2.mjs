// The TypeScript SDK v2, held to the era of 2026-07-28.
import { v2 } from "./sdks.mjs";
import { story, target } from "./story.mjs";

const host = await v2(target());
const session = await story({ list: host.list, call: (name, args) => host.call({ name, arguments: args }) });
await host.close();
console.log(JSON.stringify({ session, server: host.server() }));
