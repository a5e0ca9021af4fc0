import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, openFolder, Program } from '../../support/child-program.ts'
import type { Test } from './deployed-relay.ts'

const NGINX = '/usr/sbin/nginx'

/** Where the proxy listens, and what it complains of. */
export type Gate = {
  readonly url: string
  readonly wsUrl: string
  readonly complains: (of: RegExp) => Promise<unknown>
}

/** Debian's nginx before a relay: `proxy_pass`, the three lines that every manual gives for WebSockets, and what a test adds. */
export async function openNginx(test: Test, upstream: string, more = ''): Promise<Gate> {
  if (!existsSync(NGINX)) throw new Error(`There is no ${NGINX}: apt-get install nginx-light, and run it again.`)
  const folder = await openFolder(test)
  const port = await freePort()
  await mkdir(join(folder, 'temp'))
  await writeFile(join(folder, 'nginx.conf'), configuration({ port, folder, upstream, more }))
  const nginx = new Program([NGINX, '-p', folder, '-c', 'nginx.conf', '-e', 'stderr'], { env: { ...process.env } })
  test.onTestFinished(() => nginx.kill())
  await nginx.says('stderr', /using the "\w+" event method/)
  return {
    url: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    complains: (of) => nginx.says('stderr', of),
  }
}

type Place = { readonly port: number; readonly folder: string; readonly upstream: string; readonly more: string }

/** Whatever does not keep it in its folder and in the foreground is left at its default. */
const configuration = ({ port, folder, upstream, more }: Place): string => `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr notice;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((of) => `${of}_temp_path ${folder}/temp/${of};`).join(' ')}
  server {
    listen 127.0.0.1:${port};
    ${more}
    location / {
      proxy_pass ${upstream};
    }
    location ~ ^/(v1/ws|rpc)$ {
      proxy_pass ${upstream};
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection "upgrade";
    }
  }
}
`
