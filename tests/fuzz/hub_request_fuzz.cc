// Hostile requests of clients of the endpoint: a path, arguments and a body, with line ends between them.
#include <algorithm>
#include <string>

#include "base/text.h"
#include "endpoint/hub_answers.h"
#include "endpoint/hub_route.h"
#include "fuzzing.h"
#include "http/message.h"

namespace {

using namespace weft;

// Removes a line from the front of the text, and returns it.
std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

void check_route(const HubRoute& route) {
  fuzzing::require(hub_name(route.repository.name, route.repository.kind).has_value(), "a name is one of the hub");
  fuzzing::require(route.path.find('\0') == std::string::npos, "a path has no NUL");
  for (const std::string_view name : split(route.path, '/'))
    fuzzing::require(name != "." && name != "..", "a path stays below its directory");
}

void check_link(const HttpRequest& request) {
  const std::string link = next_page_link(request, "1.2:a/b");
  fuzzing::require(link.find_first_of("\r\n\t ") == link.find("; ") + 1, "a link is one field");
  fuzzing::require(std::ranges::count(link, '<') == 1 && std::ranges::count(link, '>') == 1, "a link has one URL");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  HttpRequest request;
  auto path = parse_http_path(next_line(text));
  if (!path.ok()) return fuzzing::require_clear(path.error(), "path: "), 0;
  request.path = *std::move(path);
  const auto arguments = parse_http_form(next_line(text));
  if (!arguments.ok()) return fuzzing::require_clear(arguments.error(), ""), 0;
  request.arguments = *arguments;
  request.fields = {{"Host", std::string(next_line(text))}, {"Content-Type", std::string(next_line(text))}};
  request.body = text;
  for (const HubRoute& route : hub_routes(request.path)) check_route(route);
  check_link(request);
  const auto paths = named_paths(request);
  if (!paths.ok()) fuzzing::require_clear(paths.error(), "");
  return 0;
}
