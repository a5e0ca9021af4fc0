import type { BufferReader, OnMessage } from './websocket-frame-reader.ts'

const LINE = 0x0a
const RETURN = 0x0d
/** No event is longer. */
const EVENT_BOUND_BYTES = 4 * 1_024 * 1_024

/** Reads a chunked body (RFC 9112 §7.1) and passes on the content. */
export class ChunkReader implements BufferReader {
  readonly #body: BufferReader
  /** Bytes left of the chunk. At 0 its line break is still to come. */
  #left = 0
  #size = 0
  #state: 'size' | 'body' | 'end' = 'size'

  constructor(body: BufferReader) {
    this.#body = body
  }

  read(bytes: Buffer, from: number, to: number): void {
    let at = from
    while (at < to) {
      if (this.#state === 'body') {
        const end = Math.min(to, at + this.#left)
        this.#body.read(bytes, at, end)
        this.#left -= end - at
        at = end
        if (this.#left === 0) this.#state = 'end'
        continue
      }
      const byte = bytes[at] ?? 0
      at += 1
      if (byte === RETURN) continue
      if (byte !== LINE) this.#size = this.#size * 16 + Number.parseInt(String.fromCharCode(byte), 16)
      else if (this.#state === 'end') this.#state = 'size'
      else {
        this.#state = 'body'
        this.#left = this.#size
        this.#size = 0
      }
    }
  }
}

/** Finds the events of a stream (each ends with an empty line), wherever chunks are cut. */
export class EventReader implements BufferReader {
  readonly #onMessage: OnMessage
  #buffered = Buffer.alloc(0)
  #bufferedBytes = 0

  constructor(onMessage: OnMessage) {
    this.#onMessage = onMessage
  }

  read(bytes: Buffer, from: number, to: number): void {
    let at = from
    if (this.#bufferedBytes > 0) at = this.#complete(bytes, from, to)
    while (at < to) {
      const end = eventEnd(bytes, at, to)
      if (end < 0) return this.#buffer(bytes, at, to)
      this.#onMessage(bytes, at, end)
      at = end
    }
  }

  #buffer(bytes: Buffer, from: number, to: number): void {
    const wanted = this.#bufferedBytes + to - from
    if (wanted > EVENT_BOUND_BYTES) throw new Error('an event does not end')
    if (this.#buffered.length < wanted)
      this.#buffered = Buffer.concat([this.#buffered.subarray(0, this.#bufferedBytes)], 2 * wanted)
    this.#bufferedBytes += bytes.copy(this.#buffered, this.#bufferedBytes, from, to)
  }

  /** Adds to the pending event until it is complete. Returns where the chunk continues. */
  #complete(bytes: Buffer, from: number, to: number): number {
    const isCut = this.#buffered[this.#bufferedBytes - 1] === LINE && bytes[from] === LINE
    const end = isCut ? from + 1 : eventEnd(bytes, from, to)
    this.#buffer(bytes, from, end < 0 ? to : end)
    if (end < 0) return to
    this.#onMessage(this.#buffered, 0, this.#bufferedBytes)
    this.#bufferedBytes = 0
    return end
  }
}

/** Where the event ends that begins here, or -1. */
function eventEnd(bytes: Buffer, from: number, to: number): number {
  let at = from
  while (at < to) {
    const line = bytes.indexOf(LINE, at)
    if (line < 0 || line + 1 >= to) return -1
    if (bytes[line + 1] === LINE) return line + 2
    at = line + 1
  }
  return -1
}
