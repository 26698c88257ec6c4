// Kin of a version as a graph, and what is drawn of it: trees of text, a log, DOT, SVG. Differences of two manifests.
// Pure and deterministic; no program is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/lineage.h"
#include "weft/manifest.h"
#include "weft/tree.h"

namespace weft {

struct KinVersion {
  std::uint64_t id = 0;  // VersionId: a larger one was published later, and edges go from smaller to larger
  VersionFacts facts;    // parents by id
  std::uint64_t bytes = 0;
  std::uint64_t tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t removed_ns = 0;  // 0: it is there
};

enum class KinWay : std::uint8_t { ancestors, descendants, both };

// Nearest first; versions[0] is the one that it is about. At least one.
struct KinGraph {
  std::vector<KinVersion> versions;
  std::uint64_t left_out = 0;  // kin that were counted and are not here
  bool uncounted = false;      // and there are more that nobody counted
};

// versions[0] on the first line, what it came from (or what came from it) below. The only parent (child) of a version
// stands straight below it, several are branches, the first one first; what was drawn before is referred to.
std::string draw_ancestors(const KinGraph& kin);
std::string draw_descendants(const KinGraph& kin);
std::string render_log(const KinGraph& kin);  // newest first
// An array of versions, newest first; see weft lineage --json in weft.1.
std::string kin_json(const KinGraph& kin);
std::string kin_dot(const KinGraph& kin);
std::string kin_svg(const KinGraph& kin);

// How a tensor is called in tensors/, without ".npy": "<escaped name>", or "@<escaped file>/<escaped name>" where its
// file is set aside. By ordinal (VersionTree::tensor_ordinal). Errc::invalid as VersionTree::build.
Result<std::vector<std::string>> tensor_labels(const Manifest& manifest);

// A line for each tensor: label, MODEL@NUMBER of the version that first had its content, bytes. By ordinal.
std::string render_owners(const Manifest& manifest, std::span<const std::string> labels,
                          std::span<const std::string> owners);

enum class Change : std::uint8_t { same, changed, added, removed };

// Of two sides, `before` and `after`; a tensor is known by its label. `same` says that type, shape and content are.
struct TensorChange {
  Change change = Change::same;
  std::string label;
  std::optional<TensorRef> before;  // none when added
  std::optional<TensorRef> after;   // none when removed
  std::string also;                 // added: the label under which `before` has this content; "" when it has not
};
struct FileChange {
  Change change = Change::same;
  std::string path;
};
struct ManifestDiff {
  std::vector<TensorChange> tensors;  // those of `after` in its order, then those that were removed
  std::vector<FileChange> files;      // by path; a file of other bytes has changed
};
Result<ManifestDiff> diff_manifests(const Manifest& before, const Manifest& after);

// How far a tensor moved: of its elements as numbers, ‖before‖₂, ‖after − before‖₂ and the largest |after − before|,
// over those elements that are finite on both sides.
struct ChangeNorms {
  double before = 0;
  double difference = 0;
  double largest = 0;
  std::uint64_t not_finite = 0;  // elements left out
};

// Two versions side by side. `norms` by index into diff.tensors, or empty; what has none there is not measured.
struct DiffSides {
  std::string before_name, after_name;
  const Manifest& before;
  const Manifest& after;
};
using Norms = std::vector<std::optional<ChangeNorms>>;
std::string render_diff(const DiffSides& sides, const ManifestDiff& diff, const Norms& norms = {});
std::string diff_json(const DiffSides& sides, const ManifestDiff& diff, const Norms& norms = {});

}  // namespace weft
