#include "http/server.h"

#include <fmt/core.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // after a failed accept, as without free descriptors
constexpr const char* kTlsPriorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3";  // of GnuTLS; the clients are weft's own
constexpr int kBacklog = 1024;                                           // clients that wait in the kernel
constexpr auto kAtOnce = std::chrono::milliseconds(0);
constexpr unsigned kFlags = static_cast<unsigned>(MHD_USE_POLL_INTERNAL_THREAD) | MHD_USE_THREAD_PER_CONNECTION |
                            MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC | MHD_USE_ERROR_LOG;

struct ResponseEnd {
  void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
};
using Response = std::unique_ptr<MHD_Response, ResponseEnd>;

int socket_of(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

MHD_Result add_field(void* fields, MHD_ValueKind /*kind*/, const char* name, const char* value) {
  static_cast<HttpFields*>(fields)->emplace_back(name, value == nullptr ? "" : value);
  return MHD_YES;
}

// The fields of a request that announce a body. libmicrohttpd reads a body after any Transfer-Encoding, and believes
// the first Content-Length.
struct BodyFields {
  bool is_encoded = false;
  std::vector<std::string> lengths;
};

MHD_Result note_body(void* seen, MHD_ValueKind /*kind*/, const char* name, const char* value) {
  auto& body = *static_cast<BodyFields*>(seen);
  if (strcasecmp(name, "Transfer-Encoding") == 0) body.is_encoded = true;
  if (strcasecmp(name, "Content-Length") == 0) body.lengths.emplace_back(value == nullptr ? "" : value);
  return MHD_YES;
}

// Returns the number of bytes of a body that may be read; nothing for any other body.
std::optional<std::uint64_t> length_of(const BodyFields& body) {
  if (body.is_encoded || body.lengths.size() > 1) return std::nullopt;
  return body.lengths.empty() ? 0 : parse_u64(body.lengths.front());
}

// An answer to a request whose header alone decides it. Its connection ends, since a body may follow. `body_max`: bytes
// of a POST; 0: it is refused.
std::optional<HttpReply> refusal_of(MHD_Connection* connection, std::string_view method, std::size_t body_max) {
  const bool is_post = method == "POST" && body_max > 0;
  if (method != "GET" && method != "HEAD" && !is_post) {
    HttpReply reply = http_text(405, body_max > 0 ? "GET, HEAD and POST only\n" : "GET and HEAD only\n");
    reply.fields.emplace_back("Allow", body_max > 0 ? "GET, HEAD, POST" : "GET, HEAD");
    return reply;
  }
  BodyFields body;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, note_body, &body);
  const auto length = length_of(body);
  if (is_post && (!length || body.lengths.empty())) return http_text(411, "expected one Content-Length\n");
  if (is_post && *length > body_max) return http_text(413, fmt::format("expected at most {} bytes\n", body_max));
  if (!is_post && length != std::uint64_t{0}) return http_text(413, "expected no body\n");
  return std::nullopt;
}

// Paths stay as the client sent them: libmicrohttpd would end one at %00, and decode %2F.
std::size_t keep_escapes(void* /*user*/, MHD_Connection* /*connection*/, char* text) {
  return std::strlen(text);
}

// The content of an answer to HEAD, which has a length and no bytes.
ssize_t no_bytes(void* /*user*/, std::uint64_t /*position*/, char* /*bytes*/, std::size_t /*size*/) {
  return MHD_CONTENT_READER_END_WITH_ERROR;
}

Response text_response(const std::string& text) {
  return Response(MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY));
}

// sendfile(2) at the end of a file sends nothing, and libmicrohttpd would repeat it until the patience is over.
Status check_length(const HttpFile& file) {
  WEFT_TRY(const struct stat st, stat_fd(file.fd.get(), "file"));
  const auto size = static_cast<std::uint64_t>(st.st_size);
  if (file.offset <= size && file.length <= size - file.offset) return {};
  return Error{Errc::changed,
               fmt::format("file: expected {} bytes at {}, has {} in all", file.length, file.offset, size)};
}

Response head_response(std::uint64_t length) {
  return Response(MHD_create_response_from_callback(length, 1, no_bytes, nullptr, nullptr));
}

Result<Response> file_response(HttpFile& file, bool is_head) {
  if (is_head) return head_response(file.length);
  if (file.length == 0) return text_response("");
  WEFT_CHECK(check_length(file));
  Response response(MHD_create_response_from_fd_at_offset64(file.length, file.fd.get(), file.offset));
  if (response) file.fd.release();  // the response closes it
  return response;
}

// The content of an answer while libmicrohttpd sends it. The response owns it.
struct Sending {
  HttpContent content;
  std::function<Result<std::size_t>(const HttpContent& content, std::uint64_t offset, std::span<std::byte> out)> read;

  static ssize_t next(void* sending, std::uint64_t position, char* bytes, std::size_t size) noexcept {
    const auto& self = *static_cast<const Sending*>(sending);
    const auto got = self.read(self.content, position, std::as_writable_bytes(std::span(bytes, size)));
    return got.ok() ? static_cast<ssize_t>(*got) : MHD_CONTENT_READER_END_WITH_ERROR;
  }
  static void end(void* sending) noexcept { delete static_cast<Sending*>(sending); }
};

Status add_fields(MHD_Response* response, const HttpFields& fields) {
  for (const auto& [name, value] : fields)
    if (MHD_add_response_header(response, name.c_str(), value.c_str()) != MHD_YES)
      return Error{Errc::internal,
                   fmt::format("header field {}: expected another value than {}", name, printable(value))};
  return {};
}

}  // namespace

struct HttpServer::Library {
  static void log(void* user, const char* format, std::va_list arguments) noexcept {
    if (!log_debugs(LogCategory::net)) return;
    std::array<char, 512> line{};
    std::vsnprintf(line.data(), line.size(), format, arguments);
    std::string_view text(line.data());
    while (text.ends_with('\n')) text.remove_suffix(1);
    log_debug(LogCategory::net, "{}: {}", static_cast<HttpServer*>(user)->options_.name, text);
  }

  static void note_connection(void* user, MHD_Connection* connection, void** /*context*/,
                              MHD_ConnectionNotificationCode code) noexcept {
    auto& server = *static_cast<HttpServer*>(user);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) return server.connections_.started(socket_of(connection));
    server.connections_.ended(socket_of(connection));
    server.bell_.ring();
  }

  // The state of one request.
  struct Exchange {
    std::string body;
    std::shared_ptr<const void> keeper;  // of the file that is being sent
  };

  static void note_answered(void* user, MHD_Connection* connection, void** exchange,
                            MHD_RequestTerminationCode /*code*/) noexcept {
    delete static_cast<Exchange*>(std::exchange(*exchange, nullptr));
    static_cast<HttpServer*>(user)->connections_.answered(socket_of(connection));
  }

  // libmicrohttpd calls this after the header, for each part of a body, and again after the body, which may be empty.
  // Only after the last call may another request follow on the connection.
  static MHD_Result answer(void* user, MHD_Connection* connection, const char* url, const char* method,
                           const char* /*version*/, const char* part, std::size_t* part_size, void** state) noexcept {
    auto& server = *static_cast<HttpServer*>(user);
    const HttpRequest::Method known = method_of(method);
    if (*state == nullptr) {
      auto refusal = refusal_of(connection, method, server.options_.body_max);
      auto* const exchange = std::make_unique<Exchange>().release();
      *state = exchange;
      return refusal ? send(server, connection, std::move(*refusal), known, *exchange) : MHD_YES;
    }
    auto& exchange = *static_cast<Exchange*>(*state);
    if (*part_size > 0) {
      if (exchange.body.size() + *part_size > server.options_.body_max) return MHD_NO;
      exchange.body.append(part, std::exchange(*part_size, 0));
      return MHD_YES;
    }
    HttpRequest request;
    request.method = known;
    request.body = std::move(exchange.body);
    MHD_get_connection_values(connection, MHD_HEADER_KIND, add_field, &request.fields);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_field, &request.arguments);
    return send(server, connection, server.reply_to(std::move(request), url, socket_of(connection)), known, exchange);
  }

  static HttpRequest::Method method_of(std::string_view method) {
    if (method == "HEAD") return HttpRequest::Method::head;
    return method == "POST" ? HttpRequest::Method::post : HttpRequest::Method::get;
  }

  static MHD_Result send(HttpServer& server, MHD_Connection* connection, HttpReply reply, HttpRequest::Method method,
                         Exchange& exchange) {
    const bool is_head = method == HttpRequest::Method::head;
    auto response = response_of(server, connection, reply, is_head);
    if (!response.ok()) {
      const std::string& problem = response.error().message;
      if (server.rare_.due(problem)) log_warning("{}: no answer: {}", server.options_.name, problem);
      reply = http_text(500, "weftd cannot send this answer\n");
      response = response_of(server, connection, reply, is_head);
      if (!response.ok()) return MHD_NO;
    }
    if (auto* const file = std::get_if<HttpFile>(&reply.body)) exchange.keeper = std::move(file->keeper);
    if (server.connections_.is_full()) MHD_add_response_header(response->get(), "Connection", "close");
    server.connections_.sending(socket_of(connection));
    return MHD_queue_response(connection, static_cast<unsigned>(reply.status), response->get());
  }

  static Result<Response> response_of(HttpServer& server, MHD_Connection* connection, HttpReply& reply, bool is_head) {
    WEFT_TRY(Response response, body_response(server, connection, reply, is_head));
    if (!response) return Error{Errc::io, "libmicrohttpd made no response"};
    WEFT_CHECK(add_fields(response.get(), reply.fields));
    return response;
  }

  static Result<Response> body_response(HttpServer& server, MHD_Connection* connection, HttpReply& reply,
                                        bool is_head) {
    if (const auto* const text = std::get_if<std::string>(&reply.body)) return text_response(*text);
    if (auto* const file = std::get_if<HttpFile>(&reply.body)) return file_response(*file, is_head);
    auto& content = std::get<HttpContent>(reply.body);
    if (is_head) return head_response(content.length);
    const std::uint64_t length = content.length;
    auto sending = std::make_unique<Sending>(Sending{
        std::move(content), [&server, socket = socket_of(connection)](const HttpContent& of, auto offset, auto out) {
          return read(server, socket, of, offset, out);
        }});
    Response response(MHD_create_response_from_callback(length, limits::kHttpContentBytes, Sending::next, sending.get(),
                                                        Sending::end));
    if (response) static_cast<void>(sending.release());
    return response;
  }

  // The connection is not slow while the content waits for its bytes.
  static Result<std::size_t> read(HttpServer& server, int socket, const HttpContent& content, std::uint64_t offset,
                                  std::span<std::byte> out) {
    server.connections_.waiting(socket);
    auto got = content.read(offset, out);
    server.connections_.resumed(socket);
    if (got.ok() && *got == 0) got = Error{Errc::io, "the content ends early"};
    const bool is_failure = !got.ok() && got.error().code != Errc::cancelled;
    if (is_failure && server.rare_.due(got.error().message))
      log_warning("{}: an answer ends early: {}", server.options_.name, got.error().message);
    return got;
  }
};

Result<std::unique_ptr<HttpServer>> HttpServer::open(Options options, Handler handler, const TimeSource& time) {
  WEFT_TRY(Fd listener, listen_tcp(options.address, options.port, kBacklog, options.name));
  WEFT_TRY(const std::uint16_t port, bound_port(listener.get(), options.name));
  std::unique_ptr<HttpServer> server(
      new HttpServer(std::move(options), std::move(handler), std::move(listener), port, time));
  WEFT_CHECK(server->start());
  return server;
}

HttpServer::HttpServer(Options options, Handler handler, Fd listener, std::uint16_t port, const TimeSource& time)
    : options_(std::move(options)),
      handler_(std::move(handler)),
      listener_(std::move(listener)),
      port_(port),
      connections_(options_.connections_max, options_.patience, time),
      worker_(options_.name, Worker::kNoRetry, time) {}

// libmicrohttpd's first thread makes all others, which inherit its signal mask.
Status HttpServer::start() {
  if (!bell_.valid()) return too_many_open(options_.name);
  const SignalsBlocked blocked;
  void* const self = this;
  const bool tls = !options_.certificate.empty();
  std::array<MHD_OptionItem, 4> secured = {{{MHD_OPTION_END, 0, nullptr}, {}, {}, {}}};
  if (tls)
    secured = {{{MHD_OPTION_HTTPS_MEM_CERT, 0, const_cast<char*>(options_.certificate.c_str())},
                {MHD_OPTION_HTTPS_MEM_KEY, 0, const_cast<char*>(options_.private_key.c_str())},
                {MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kTlsPriorities)},
                {MHD_OPTION_END, 0, nullptr}}};
  // connections_ bounds the connections. libmicrohttpd counts one a moment longer than connections_ does.
  const auto connections = static_cast<unsigned>(2 * options_.connections_max + 1);
  library_ = MHD_start_daemon(tls ? kFlags | MHD_USE_TLS : kFlags, 0, nullptr, nullptr, &Library::answer, self,
                              MHD_OPTION_EXTERNAL_LOGGER, &Library::log, self, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                              limits::kHttpMemory, MHD_OPTION_CONNECTION_LIMIT, connections,
                              MHD_OPTION_NOTIFY_CONNECTION, &Library::note_connection, self,
                              MHD_OPTION_NOTIFY_COMPLETED, &Library::note_answered, self, MHD_OPTION_UNESCAPE_CALLBACK,
                              &keep_escapes, nullptr, MHD_OPTION_ARRAY, secured.data(), MHD_OPTION_END);
  if (library_ == nullptr) return Error{Errc::io, fmt::format("{}: libmicrohttpd did not start", options_.name)};
  worker_.start([this] { return round(); }, [this] { bell_.ring(); });
  return {};
}

HttpServer::~HttpServer() {
  is_ending_ = true;
  worker_.end();
  if (library_ != nullptr) MHD_stop_daemon(library_);
}

// While the server is crowded the listener stays ready, so the worker waits for the end of a connection only.
Worker::Pause HttpServer::round() {
  is_crowded_ = is_crowded_ && connections_.is_full();
  std::array<pollfd, 2> ready = {{{bell_.fd(), POLLIN, 0}, {is_crowded_ ? -1 : listener_.get(), POLLIN, 0}}};
  wait_for(ready, connections_.tend(is_crowded_));
  if (ready[0].revents != 0) bell_.clear();
  if (ready[1].revents == 0) return Worker::Pause(0);
  is_crowded_ = connections_.is_full();
  return is_crowded_ ? Worker::Pause(0) : accept();
}

Worker::Pause HttpServer::accept() {
  auto accepted = accept_socket(listener_.get());
  if (!accepted.ok()) {
    const std::string& problem = accepted.error().message;
    if (rare_.due(problem)) log_warning("{}: {}", options_.name, problem);
    return kAcceptPause;
  }
  if (!accepted->valid()) return Worker::Pause(0);
  const int socket = accepted->release();
  connections_.accepted(socket);
  sockaddr_in unknown{};  // libmicrohttpd wants the client's address for limits that are not set
  unknown.sin_family = AF_INET;
  const auto* const address = reinterpret_cast<const sockaddr*>(&unknown);
  const bool is_taken = MHD_add_connection(library_, socket, address, sizeof unknown) == MHD_YES;
  if (!is_taken) connections_.refused(socket);
  return Worker::Pause(0);
}

HttpReply HttpServer::reply_to(HttpRequest request, std::string_view raw_path, int socket) {
  if (raw_path.size() > limits::kHttpPathMax) return http_text(414, "the path is too long\n");
  auto path = parse_http_path(raw_path);
  if (!path.ok()) return http_text(400, path.error().message + "\n");
  auto arguments = decode_http_arguments(request.arguments);
  if (!arguments.ok()) return http_text(400, arguments.error().message + "\n");
  request.path = std::move(path).value();
  request.arguments = std::move(arguments).value();
  request.cancelled = [this, socket] { return is_ending_ || wait_for(socket, POLLRDHUP, kAtOnce); };
  connections_.answering(socket);
  return handler_(request);
}

}  // namespace weft
