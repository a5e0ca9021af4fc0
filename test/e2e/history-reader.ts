import { expect } from 'vitest'
import { EventsPage } from '../../src/protocol/history.ts'
import type { TestListener } from '../support/test-listener.ts'
import { fetchDocumented, type TestStack } from '../support/test-stack.ts'

/** More pages than any test needs: a cursor that repeats reaches it. */
const PAGES_BOUND = 500

/** The lines at a path; fails where the last one does not end with a line break. */
export async function readLines({ relay }: Pick<TestStack, 'relay'>, path: string): Promise<readonly string[]> {
  const response = await fetch(`${relay.url}${path}`)
  const text = await response.text()
  expect([response.status, text.at(-1) ?? '\n']).toEqual([200, '\n'])
  expect(response.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
  return text.split('\n').slice(0, -1)
}

/** Follows `next` from a path on until it is null. */
export async function readAllPages({ relay }: Pick<TestStack, 'relay'>, path: string): Promise<readonly string[]> {
  const texts: string[] = []
  const url = new URL(path, relay.url)
  for (let pages = 0; pages < PAGES_BOUND; pages += 1) {
    const { status, text, json } = await fetchDocumented(url.href)
    expect(status).toBe(200)
    const page = EventsPage.parse(json)
    texts.push(...pageTexts(text, page))
    if (page.next === null) return texts
    url.searchParams.set('after', page.next)
  }
  throw new Error('the pages never end')
}

/** The exact texts of the messages of a page. */
function pageTexts(body: string, { events }: EventsPage): readonly string[] {
  const texts = events.map((event) => JSON.stringify(event))
  expect(body.startsWith(`{"events":[${texts.join(',')}],"next":`)).toBe(true)
  return texts
}

/** The exact texts of the updates that a listener received. */
export const tapeTexts = (listener: TestListener): readonly string[] =>
  listener.received.filter(({ message }) => 'prev' in message).map(({ text }) => text)
