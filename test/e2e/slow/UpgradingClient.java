import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/** Java's own client as it comes: it prefers HTTP/2, and without TLS asks for it by an upgrade to h2c. */
class UpgradingClient {
  private static final int TIMEOUT_S = 10;

  public static void main(String[] args) throws Exception {
    var url = args[0];
    var client = HttpClient.newHttpClient();
    var answer = client.send(requestFor(url + "/healthz"), BodyHandlers.ofString());
    System.out.println("GET " + answer.statusCode() + " " + answer.version() + " " + answer.body());
    var post = HttpRequest.newBuilder(URI.create(url + "/rpc"))
        .POST(HttpRequest.BodyPublishers.ofString("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"params\":[]}"));
    System.out.println("POST " + client.send(post.build(), BodyHandlers.ofString()).body());
    var stream = client.send(requestFor(url + "/v1/stream/AAPLc"), BodyHandlers.ofLines());
    stream.body().filter(line -> line.contains("\"type\":\"live\"")).findFirst().ifPresent(line -> System.out.println("SSE " + line));
    System.out.println("WebSocket " + firstLive(client, url.replace("http", "ws") + "/v1/ws?symbols=AAPLc").get(TIMEOUT_S, TimeUnit.SECONDS));
    System.exit(0);
  }

  private static HttpRequest requestFor(String url) {
    return HttpRequest.newBuilder(URI.create(url)).build();
  }

  private static CompletableFuture<String> firstLive(HttpClient client, String url) {
    var live = new CompletableFuture<String>();
    client.newWebSocketBuilder().buildAsync(URI.create(url), new WebSocket.Listener() {
      private String text = "";

      @Override
      public CompletionStage<?> onText(WebSocket socket, CharSequence data, boolean last) {
        text += data;
        if (last && text.contains("\"type\":\"live\"")) live.complete(text);
        if (last) text = "";
        socket.request(1);
        return null;
      }

      @Override
      public void onError(WebSocket socket, Throwable failure) {
        live.completeExceptionally(failure);
      }
    });
    return live;
  }
}
