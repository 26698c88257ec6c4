// A publish that inherits from a stored version.
#pragma once

#include "model/inherit.h"
#include "publish/draft.h"
#include "weft/node.h"

namespace weft {

class Inheritance {
 public:
  static Result<Inheritance> begin(Store& store, const VersionRow& base, bool add);
  // The whole version, of the base and the files that are given. The same call before and after their ids have digests.
  Result<Inherited> whole(const DraftFiles& given) const;
  // Of the whole: the base's, unless a file or a tensor's type or shape is another; then a config.json that is
  // inherited is read.
  Result<Architecture> architecture(Store& store, const Inherited& whole, const DraftFiles& given) const;

 private:
  Inheritance(LoadedVersion base, bool add) : base_(std::move(base)), add_(add) {}
  LoadedVersion base_;
  bool add_;
};

// Gives the headers of ours to the import, and the version their ids.
Status add_headers(Import& import, Inherited& version, Progress& progress);

}  // namespace weft
