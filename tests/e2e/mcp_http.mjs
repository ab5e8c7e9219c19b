// An MCP server over streamable HTTP, of the TypeScript SDK in the folder of its argument, with one session per client.
// Prints its URL.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { pathToFileURL } from "node:url";

const sdk = (name) => import(pathToFileURL(`${process.argv[2]}/dist/esm/server/${name}.js`).href);
const { McpServer } = await sdk("mcp");
const { StreamableHTTPServerTransport } = await sdk("streamableHttp");
const sessions = new Map();

async function open() {
    const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => console.log(`closed ${sessions.delete(id)}`),
    });
    const server = new McpServer({ name: "clock", version: "1" });
    server.registerTool("zone", { description: "Name of the time zone" },
        async () => ({ content: [{ type: "text", text: "UTC" }] }));
    await server.connect(transport);
    return transport;
}

const server = createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    if (id && !sessions.has(id)) {
        response.writeHead(404).end();
        return;
    }
    await (id ? sessions.get(id) : await open()).handleRequest(request, response);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
