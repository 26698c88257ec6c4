#include "registry/join_uses.h"

#include <fmt/core.h>

#include <span>
#include <string>
#include <vector>

#include "base/text.h"

namespace weft {
namespace {

constexpr unsigned kCountTriesMax = 10;

std::vector<std::byte> number_bytes(std::uint64_t number) {
  const std::string text = std::to_string(number);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Result<std::uint64_t> number_in(const etcd::KeyValue& item) {
  const std::string_view text(reinterpret_cast<const char*>(item.value.data()), item.value.size());
  if (const auto number = parse_u64(text)) return *number;
  return Error{Errc::corrupt, fmt::format("key {}: expected a number", printable(item.key))};
}

}  // namespace

Result<bool> count_join(etcd::Client& client, const RegistryKeys& keys, std::string_view id, std::uint64_t uses_max,
                        std::chrono::seconds kept) {
  const std::string key = keys.join(id);
  for (unsigned tries = 0; tries < kCountTriesMax; ++tries) {
    WEFT_TRY(const etcd::RangeAnswer found, client.range(etcd::query_of(key)));
    std::uint64_t used = 0, revision = 0;
    if (!found.items.empty()) {
      WEFT_TRY(used, number_in(found.items.front()));
      revision = found.items.front().mod_revision;
    }
    if (used >= uses_max) return false;
    // etcd deletes the record with its lease. An earlier lease of it then has no key.
    WEFT_TRY(const etcd::LeaseAnswer lease, client.grant_lease(static_cast<std::uint64_t>(kept.count())));
    etcd::Txn txn;
    txn.compares.push_back({{key, {}}, etcd::Target::mod_revision, etcd::Relation::equal, revision});
    txn.then.emplace_back(etcd::Put{key, number_bytes(used + 1), lease.id});
    WEFT_TRY(const etcd::TxnAnswer answer, client.txn(txn));
    if (answer.succeeded) return true;
  }
  return Error{Errc::busy, "the uses of the token change again and again; try again"};
}

}  // namespace weft
