// Requests and answers of the HTTP server: paths, header fields and ranges. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

using HttpFields = std::vector<std::pair<std::string, std::string>>;  // header fields or arguments: name, value

// The path of a request, without the query. Its bytes may be any but NUL: a handler that opens files by them checks
// them.
struct HttpPath {
  std::string text;  // decoded; begins with '/'
  // The parts between the '/' that were sent as such, each decoded. A part may contain a '/' that was sent as %2F.
  std::vector<std::string> segments;
};

// Decodes %XX once. Errc::invalid: the path does not begin with '/', has an escape that is none, a NUL, a component "."
// or ".." (also one that consists of escapes), or more than limits::kHttpSegmentsMax segments.
Result<HttpPath> parse_http_path(std::string_view raw);

// Decode the arguments of a query, or of a form in a body (application/x-www-form-urlencoded), in their order. A plus
// is a blank. Errc::invalid: an escape that is none, a NUL, or more than limits::kHttpArgumentsMax arguments.
Result<HttpFields> decode_http_arguments(const HttpFields& raw);
Result<HttpFields> parse_http_form(std::string_view form);

// The bytes of a content of `size` bytes that a request asks for.
struct HttpPart {
  enum class Kind : unsigned char { whole, range, unsatisfiable };
  Kind kind = Kind::whole;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t size = 0;
};

// Reads the value of a Range field. Several ranges, another unit and a malformed value count as no range.
HttpPart parse_http_range(std::string_view range, std::uint64_t size);

// For the call of the handler only.
struct HttpRequest {
  enum class Method : unsigned char { get, head, post };

  Method method = Method::get;
  HttpPath path;
  HttpFields arguments;  // of the query, decoded, in the order of the request
  HttpFields fields;     // in the order of the request
  std::string body;      // of a POST
  // True once the client has closed its connection or the server ends. A waiting handler calls it several times a
  // second. A function of HttpContent may call a copy.
  std::function<bool()> cancelled = [] { return false; };

  // Returns the first field of this name, in any case of letters.
  std::optional<std::string_view> field(std::string_view name) const;
  // Returns the first argument of this name.
  std::optional<std::string_view> argument(std::string_view name) const;
  // Returns the part of a content that the answer has. `etag`: the value of the ETag field of this answer, with its
  // quotes. A range counts only for GET, and with If-Range only if that is equal to `etag`.
  HttpPart part_of(std::uint64_t size, std::string_view etag = {}) const;
  // True if the client has the content with this ETag already, by its field If-None-Match. `etag`: with its quotes.
  bool has_content(std::string_view etag) const;
};

// Bytes of a file, which sendfile(2) sends. The file must not become shorter meanwhile.
struct HttpFile {
  Fd fd;  // may be invalid in the answer to HEAD
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::shared_ptr<const void> keeper = {};  // what must live until the answer is sent
};

// Bytes that a function reads while the answer is sent.
struct HttpContent {
  std::uint64_t length = 0;
  // Fills the front of `out` with the bytes from `offset` on, and returns their number, which is not 0. Runs on the
  // thread of the connection, call after call, and may wait as a handler does. After an error the server logs it and
  // closes the connection, so that the client misses bytes.
  std::function<Result<std::size_t>(std::uint64_t offset, std::span<std::byte> out)> read;
};

struct HttpReply {
  int status = 200;
  // Without Content-Length, Date and Connection, which the server adds. No value is empty or has a line end.
  HttpFields fields;
  std::variant<std::string, HttpFile, HttpContent> body;
};

HttpReply http_text(int status, std::string text, std::string type = "text/plain; charset=utf-8");
// Returns status and fields for a part: 200, 206 or 416. The caller sets the body of a 200 or 206 to the bytes of the
// part.
HttpReply http_part_reply(const HttpPart& part);
// Returns the answer without a body to a client that has_content(). `fields`: ETag, and those that describe the
// content.
HttpReply http_not_modified(HttpFields fields);

}  // namespace weft
