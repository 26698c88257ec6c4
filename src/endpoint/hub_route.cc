#include "endpoint/hub_route.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "weft/store/snapshot.h"

namespace weft {
namespace {

using Segments = std::span<const std::string>;
using What = HubRoute::What;

constexpr std::string_view kDatasets = "datasets";
constexpr std::size_t kNameSegmentsMax = 2;

std::string joined(Segments segments) {
  std::string text;
  for (const std::string& segment : segments) {
    if (!text.empty()) text += '/';
    text += segment;
  }
  return text;
}

// Reads the part of a path behind the name. Returns nothing if the endpoint has no such request.
std::optional<HubRoute> api_request(Segments rest) {
  if (rest.empty()) return HubRoute{What::info, {}, std::string(kMainRevision), {}};
  const std::string_view verb = rest.front();
  if (verb == "refs" && rest.size() == 1) return HubRoute{What::refs, {}, {}, {}};
  if (rest.size() < 2) return std::nullopt;
  const Segments behind = rest.subspan(2);
  if (verb == "revision" && behind.empty()) return HubRoute{What::info, {}, rest[1], {}};
  if (verb == "paths-info" && behind.empty()) return HubRoute{What::paths, {}, rest[1], {}};
  if (verb != "tree") return std::nullopt;
  const bool ends_with_slash = !behind.empty() && behind.back().empty();
  return HubRoute{What::tree, {}, rest[1], joined(ends_with_slash ? behind.first(behind.size() - 1) : behind)};
}

std::optional<HubRoute> file_request(Segments rest) {
  if (rest.size() < 3 || rest.front() != "resolve") return std::nullopt;
  return HubRoute{What::file, {}, rest[1], joined(rest.subspan(2))};
}

void add_routes(std::vector<HubRoute>& routes, Segments segments, VersionKind kind,
                std::optional<HubRoute> (*request_of)(Segments rest)) {
  for (std::size_t count = kNameSegmentsMax; count > 0; --count) {
    if (segments.size() < count) continue;
    auto route = request_of(segments.subspan(count));
    std::string name = joined(segments.first(count));
    if (!route || !hub_name(name, kind)) continue;
    route->repository = {std::move(name), kind};
    routes.push_back(*std::move(route));
  }
}

}  // namespace

std::vector<HubRoute> hub_routes(const HttpPath& path) {
  std::vector<HubRoute> routes;
  const Segments all(path.segments);
  if (all.size() > 2 && all[0] == "api") {
    if (all[1] == "models") add_routes(routes, all.subspan(2), VersionKind::model, api_request);
    if (all[1] == kDatasets) add_routes(routes, all.subspan(2), VersionKind::dataset, api_request);
  }
  if (!all.empty() && all[0] == kDatasets) add_routes(routes, all.subspan(1), VersionKind::dataset, file_request);
  add_routes(routes, all, VersionKind::model, file_request);
  return routes;
}

}  // namespace weft
