// Starts Azurite on a port of its own choosing, makes a container in it, prints the port, and stays until its standard
// input ends: whoever started it may be killed.
//
//   node start.mjs <folder with node_modules> <folder for data> <container>
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";

const [packages, data, container] = process.argv.slice(2);
const port = await new Promise((found) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => found(port));
  });
});
const program = join(packages, "node_modules/azurite/dist/src/blob/main.js");
const options = ["--blobHost", "127.0.0.1", "--blobPort", String(port), "--location", data];
const server = spawn(process.execPath, [program, ...options, "--silent", "--skipApiVersionCheck", "--disableTelemetry"], {
  stdio: ["ignore", "ignore", "inherit"],
});
const stop = () => {
  server.kill();
  process.exit(0);
};
process.stdin.on("end", stop).resume();

// Azurite's own well-known account; nothing about it is secret.
const { BlobServiceClient, StorageSharedKeyCredential } = createRequire(join(packages, "package.json"))("@azure/storage-blob");
const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const client = new BlobServiceClient(
  `http://127.0.0.1:${port}/devstoreaccount1`,
  new StorageSharedKeyCredential("devstoreaccount1", key),
);
for (let tried = 0; ; tried += 1) {
  try {
    await client.createContainer(container);
    break;
  } catch (error) {
    if (tried > 100) throw error;
    await new Promise((later) => setTimeout(later, 200));
  }
}
console.log(port);
