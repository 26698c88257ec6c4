// The records of an origin's journal, one file each. The file name is a time and a hash of the subject (model and
// number; for a tag all fields), so that all nodes that received one event write one file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// Returns the file name: "<time>-<hash>" for a version, with the suffix ".tag" for a tag, ".rm" for a removal,
// ".note" for a description, ".undelete" for an undelete, ".moved" for a new number.
std::string catalog_event_name(const CatalogEvent& event, std::string_view cluster);
std::vector<std::byte> encode_catalog_event(const CatalogEvent& event, std::string_view cluster);

struct CatalogRecord {
  CatalogEvent event;
  std::string cluster;  // id of the cluster that set a tag; "" for other events
};
// Names, numbers and texts of the result are within their bounds. Errc::corrupt: not one whole record, of another kind,
// or with impossible values. Errc::unsupported: another format version.
Result<CatalogRecord> decode_catalog_event(std::span<const std::byte> bytes, std::string_view where);

}  // namespace weft
