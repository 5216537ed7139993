// The TypeScript SDK v1: the eras up to 2025-11-25.
import { v1 } from "./sdks.mjs";
import { story, target } from "./story.mjs";

const host = await v1(target());
const session = await story({ list: host.list, call: (name, args) => host.call({ name, arguments: args }) });
await host.close();
console.log(JSON.stringify({ session, server: host.server() }));
