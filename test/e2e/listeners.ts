import { onTestFinished } from 'vitest'
import type { TestListener } from '../support/test-listener.ts'
import { listenToAll, openTestStack } from '../support/test-stack.ts'

/** A listener that closes with the test. */
export async function closeAfterTest(opening: Promise<TestListener>): Promise<TestListener> {
  const listener = await opening
  onTestFinished(() => listener.close())
  return listener
}

export async function waitUntilLive(opening: Promise<TestListener>): Promise<TestListener> {
  const listener = await closeAfterTest(opening)
  await listener.waitFor('live')
  return listener
}

/** Resolves when the newest status has this source. */
export const waitForSource = (listener: TestListener, name: string): Promise<void> =>
  listener.until(() => listener.messagesOf('status').at(-1)?.source === name, `the source ${name}`)

/** Resolves when a block at least this high is sealed. */
export const waitForSealAt = (listener: TestListener, number: number) =>
  listener.waitFor('seal', ({ block }) => block.number >= number)

/** A stack with a listener to everything, from now on or from the start of the tape. */
export async function openStackWithListener(settings: Record<string, string> = {}, since: 'now' | 'start' = 'now') {
  const stack = await openTestStack(settings)
  const listener = await listenToAll(stack, since)
  if (since === 'start') await waitForSource(listener, 'pendingLogs')
  return { stack, ...stack, listener }
}
