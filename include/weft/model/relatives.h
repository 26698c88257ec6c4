// The relatives of a version as a graph (model/kin_facts.cc), and drawings of it: trees of text, a log, DOT, SVG.
// Differences of two manifests. Pure and deterministic; calls no program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/model/manifest.h"
#include "weft/model/tree.h"

namespace weft {

enum class KinWay : std::uint8_t { ancestors, descendants, both };

// Facts of a version that a picture shows and its row lacks.
struct KinMarks {
  std::vector<std::string> tags;           // by name
  std::optional<std::uint64_t> new_bytes;  // bytes of which it is the first owner; nothing: not known on this node
};

// Nearest first, at least one. versions[0] is the version that the graph is about. Edges are ParentRef::id, and go from
// smaller to larger ids.
struct KinGraph {
  std::vector<VersionRow> versions;
  std::uint64_t left_out = 0;     // relatives beyond the bound: counted, not listed
  bool uncounted = false;         // there are more that were not counted
  std::vector<KinMarks> marks{};  // by version; empty: not gathered
};

// Draws versions[0] on the first line, and its ancestors (descendants) below. The only parent (child) of a version is
// straight below it. Several are branches, the first one first. A version that appears again refers to its first
// drawing.
std::string draw_ancestors(const KinGraph& kin);
std::string draw_descendants(const KinGraph& kin);
std::string render_log(const KinGraph& kin);  // newest first
// An array of versions, newest first; see weft lineage --json in weft.1.
std::string kin_json(const KinGraph& kin);
std::string kin_dot(const KinGraph& kin);
std::string kin_svg(const KinGraph& kin);

// Returns the names of the tensors in tensors/, without ".npy": "<escaped name>", or "@<escaped file>/<escaped name>"
// if the file is set aside. By ordinal (VersionTree::tensor_ordinal). Errc::invalid as VersionTree::build.
Result<std::vector<std::string>> tensor_labels(const Manifest& manifest);

// Returns a line for each tensor: label, MODEL@NUMBER of the version that first had its content, bytes. By ordinal.
std::string render_owners(const Manifest& manifest, std::span<const std::string> labels,
                          std::span<const std::string> owners);

enum class Change : std::uint8_t { same, changed, added, removed };

// A tensor in the manifests `before` and `after`, identified by its label. `same`: type, shape and content are equal.
struct TensorChange {
  Change change = Change::same;
  std::string label;
  std::optional<TensorRef> before;  // none if added
  std::optional<TensorRef> after;   // none if removed
  std::string also;                 // added: the label of this content in `before`, or ""
};
struct FileChange {
  Change change = Change::same;
  std::string path;
};
struct ManifestDiff {
  std::vector<TensorChange> tensors;  // tensors of `after` in its order, then removed ones
  std::vector<FileChange> files;      // by path, then empty directories; `changed`: other bytes, or other x bits
};
Result<ManifestDiff> diff_manifests(const Manifest& before, const Manifest& after);

// How far a tensor moved: ‖before‖₂, ‖after − before‖₂ and the largest |after − before| of its elements as numbers,
// over the elements that are finite on both sides.
struct ChangeNorms {
  double before = 0;
  double difference = 0;
  double largest = 0;
  std::uint64_t not_finite = 0;  // elements left out
};

// Two versions side by side. `norms` is by index into diff.tensors, or empty; a tensor without norms was not measured.
struct DiffSides {
  std::string before_name, after_name;
  const Manifest& before;
  const Manifest& after;
};
using Norms = std::vector<std::optional<ChangeNorms>>;
std::string render_diff(const DiffSides& sides, const ManifestDiff& diff, const Norms& norms = {});
std::string diff_json(const DiffSides& sides, const ManifestDiff& diff, const Norms& norms = {});

}  // namespace weft
