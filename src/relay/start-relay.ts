import { openRelay, type Relay, type RelayOptions } from './relay.ts'

/** Starts a relay. Where its tape has to be opened anew, the relay is, too: on the same port, and clients come back to it. */
export async function startRelay(options: RelayOptions): Promise<Relay> {
  let isStopped = false
  let reopening: Promise<unknown> = Promise.resolve()
  const open = (PORT: number): Promise<Relay> =>
    openRelay({
      ...options,
      config: { ...options.config, PORT },
      reopen: (why) => {
        reopening = reopening.then(() => reopen(why)).catch(options.onFailure)
      },
    })
  const reopen = async (why: string): Promise<void> => {
    if (isStopped) return
    options.log.warn({ why }, 'the tape does not continue: the relay opens it anew')
    await relay.stop()
    relay = await open(relay.port)
    // A stop that came meanwhile has stopped the relay before.
    if (isStopped) await relay.stop()
  }
  let relay = await open(options.config.PORT)
  const { port, whenListed } = relay
  return {
    ...{ port, whenListed },
    announceStop: () => relay.announceStop(),
    stop: async () => {
      isStopped = true
      await relay.stop()
      await reopening
    },
  }
}
