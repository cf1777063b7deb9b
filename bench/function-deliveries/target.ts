// A local server that answers each request at once.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => response.end('{"ok":true}'));
});
server.listen(Number(process.env.TARGET_PORT), '127.0.0.1');
