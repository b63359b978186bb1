/* Browsers do not support workers in pages of the file system. There, search runs in a hidden frame with the same interface. */
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.scope = frame.contentWindow
      this.waiting = []
      this.scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.scope.importScripts = (...urls) =>
        urls.reduce((previous, next) => previous.then(() => this.load(next)), Promise.resolve())
      this.load(url).then(() => {
        this.waiting.forEach(data => this.deliver(data))
        this.waiting = null
      })
    }

    load(src) {
      return new Promise((resolve, reject) => {
        const script = this.scope.document.createElement("script")
        Object.assign(script, { src, onload: resolve, onerror: reject })
        this.scope.document.body.appendChild(script)
      })
    }

    deliver(data) {
      this.scope.dispatchEvent(new MessageEvent("message", { data }))
    }

    postMessage(data) {
      this.waiting ? this.waiting.push(data) : this.deliver(data)
    }
  }
}
