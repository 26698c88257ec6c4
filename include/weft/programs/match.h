// Finds the stored versions that share most with an architecture (query/match.cc), or that match a pattern
// (query/find.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/model/arch.h"
#include "weft/model/find.h"
#include "weft/programs/operations.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// The subject of a match: a version of the store, files that are not published, or a graph alone.
struct MatchSubject {
  ArchGraph graph;
  std::optional<VersionId> version;
};
// Reads "MODEL[@V]", or a path: a directory, a model file, or a file *.json with the output of graph_json(). The
// argument is a path if it names no version of the store, begins with '.' or '/', or ends with '/' or ".json".
Result<MatchSubject> match_subject(Store& store, ManifestResolver& resolver, const std::string& argument,
                                   Progress& progress);

struct MatchOptions {
  std::size_t top = 10;
  std::string metric;     // orders versions that share equally many layers
  bool smallest = false;  // its smallest value is best
};
// A tensor of the subject, and the tensor of the stored version that can replace it: type and shape are equal.
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
// Returns the best versions first, without the subject's own version.
Result<std::vector<Match>> find_matches(Store& store, ManifestResolver& resolver, const MatchSubject& subject,
                                        const MatchOptions& options);

// Calls found(row) for the live versions that match the query, by model name and number, outside of any snapshot. An
// error of `found` ends the search.
Status find_versions(Store& store, ManifestResolver& resolver, const Query& query, Progress& progress,
                     const std::function<Status(const VersionRow&)>& found);

}  // namespace weft
