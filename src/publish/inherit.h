// A publish that inherits from a stored version.
#pragma once

#include "model/inherit.h"
#include "publish/draft.h"
#include "weft/node.h"

namespace weft {

class Inheritance {
 public:
  static Result<Inheritance> begin(Store& store, ManifestResolver& resolver, const VersionRow& base, bool add);
  // Returns the whole version: the base with the given files. Their ids need no digests.
  Result<Inherited> whole(const DraftFiles& given) const;
  // Returns the architecture of the whole version: the base's, unless a file, or a tensor's type or shape, differs.
  // Then it is computed again, which reads an inherited config.json.
  Result<Architecture> architecture(Store& store, const Inherited& whole, const DraftFiles& given) const;

 private:
  Inheritance(LoadedVersion base, bool add) : base_(std::move(base)), add_(add) {}
  LoadedVersion base_;
  bool add_;
};

// Adds the headers that weft wrote to the import, and their ids to the version.
Status add_headers(Import& import, Inherited& version, Progress& progress);

}  // namespace weft
