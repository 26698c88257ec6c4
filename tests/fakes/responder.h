// An HTTP server on loopback that answers by the head and the number of a request.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/http_server.h"

namespace weft::testing {

struct Asked {
  std::string path;        // with the query
  std::string head;        // request line and fields
  std::size_t number = 0;  // from 1 on

  bool has(const std::string& text) const { return head.find(text) != std::string::npos; }
  // Returns the value of a field; "" if there is none.
  std::string field(const std::string& name) const {
    const auto at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return {};
    const auto begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

// The test sends one request at a time.
class Responder {
 public:
  // Returns all bytes of the answer. The connection is closed behind them.
  using Answer = std::function<std::string(const Asked& asked)>;
  explicit Responder(Answer answer)
      : answer_(std::move(answer)), server_([this](int fd, const std::string& path, const std::string& /*body*/) {
          const std::vector<std::string> heads = server_.heads();
          send_text(fd, answer_({path, heads.back(), heads.size()}));
        }) {}

  std::string endpoint() const { return server_.endpoint(); }
  std::vector<std::string> heads() const { return server_.heads(); }
  std::size_t requests() const { return server_.heads().size(); }

 private:
  const Answer answer_;
  HttpServer server_;
};

inline std::string redirect_to(const std::string& location, const std::string& fields = {}) {
  return http_answer(302, "", "Location: " + location + "\r\n" + fields);
}

// Returns the answer to a request for a range of this content. `sent`: how many bytes of the range the answer has
// before the connection ends.
inline std::string range_answer(const Asked& asked, const std::string& content, std::size_t sent = std::string::npos) {
  const std::string range = asked.field("Range");  // "bytes=0-9"
  const std::size_t first = std::stoul(range.substr(range.find('=') + 1));
  const std::size_t last = std::stoul(range.substr(range.find('-') + 1));
  const std::string body = content.substr(first, last - first + 1);
  return "HTTP/1.1 206 X\r\nContent-Length: " + std::to_string(body.size()) + "\r\nContent-Range: bytes " +
         std::to_string(first) + "-" + std::to_string(last) + "/" + std::to_string(content.size()) +
         "\r\nConnection: close\r\n\r\n" + body.substr(0, sent);
}

}  // namespace weft::testing
