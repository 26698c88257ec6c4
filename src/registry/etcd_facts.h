// The facts in etcd that decide whether a version becomes live.
#pragma once

#include <cstdint>

#include "registry/etcd_names.h"
#include "registry/registry_records.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Errc::exists: the registry has another version of this number than the one that a change is for.
Error has_another(std::string_view model, std::uint64_t number);
// Errc::exists unless the version is the expected one. Zeros expect any.
Status check_uid(const VersionRow& row, std::string_view model, std::uint64_t number, const Uuid& expected);

// Records that a version is purged; time 0 is now.
etcd::Put purge_of(const RegistryKeys& keys, const PurgedVersion& version);

// The facts of one model, all of one revision.
struct EtcdNames::Facts {
  etcd::Header header;
  RegistryHead head;
  std::uint64_t head_revision = 0;      // 0: the model does not exist yet
  std::uint64_t removals_revision = 0;  // revision of the newest removal
  std::uint64_t newest = 0;             // newest live number; 0: none
  std::uint64_t newest_revision = 0;
  MirroredVersion newest_version;
  VersionRow tried;                  // the version that has the tried number, live or removed
  std::uint64_t tried_revision = 0;  // 0: no version has the number

  bool tried_is_ours(const VersionRow& row) const { return tried_revision != 0 && tried.uid == row.uid; }
  bool newest_is(const Digest& manifest) const { return newest != 0 && newest_version.version.manifest == manifest; }
  // Errc::exists: the live versions of the model have another kind.
  Status check_kind(const std::string& model, VersionKind kind) const;
};

}  // namespace weft
