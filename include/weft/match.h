// Which stored versions share most with an architecture, and which fit a pattern.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/arch.h"
#include "weft/find.h"
#include "weft/node.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// What is to be matched: a version of the store, files that are not published, or a graph by itself.
struct MatchSubject {
  ArchGraph graph;
  std::optional<VersionId> version;
};
// "MODEL[@V]"; or a directory, a model file, or a file *.json with what graph_json() writes: what names no version of
// the store, or begins with '.' or '/', or ends with '/' or ".json", is a path.
Result<MatchSubject> match_subject(Store& store, const std::string& argument, Progress& progress);

struct MatchOptions {
  std::size_t top = 10;
  std::string metric;     // decides between versions that share as much
  bool smallest = false;  // its smallest value is best
};
// A tensor of the subject, and that of the stored version which can be taken for it: type and shape are the same.
struct TakenTensor {
  std::string name;
  std::string from;
  DType dtype = DType::u8;
  Shape shape;
  std::uint64_t bytes = 0;
};
struct Match {
  VersionRow version;
  std::uint64_t shared = 0;    // vertices of the common prefix
  std::uint64_t vertices = 0;  // of the stored version
  std::vector<TakenTensor> tensors;
};
// Best first; the subject's own version is not among them.
Result<std::vector<Match>> find_matches(Store& store, const MatchSubject& subject, const MatchOptions& options);

// Calls found(row) for the live versions that the query is true of, by model name and number, under no snapshot; an
// error that it returns ends the search.
Status find_versions(Store& store, const Query& query, Progress& progress,
                     const std::function<Status(const VersionRow&)>& found);

}  // namespace weft
