import { NatsServer } from './nats-server.ts'

/** One nats-server for all files of the project. Each relay has a stream of its own there. */
export default async function setup(): Promise<() => Promise<void>> {
  const server = await NatsServer.start()
  process.env.STOCKTAPE_NATS_URL = server.url
  return () => server.remove()
}
