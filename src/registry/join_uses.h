// The uses of a join token, counted in the registry of the cluster that it leads to. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "registry/etcd/etcd_client.h"
#include "registry/registry_keys.h"
#include "weft/result.h"

namespace weft {

// Records one more use of the token with this id (32 hexadecimal digits), for `kept`: the time until the token expires,
// or longer. Returns false, and records nothing, if `uses_max` are recorded already. The record is durable when the
// function returns. Errc::timed_out: unknown whether the use is recorded. Errc::busy: others change the record again
// and again.
Result<bool> count_join(etcd::Client& client, const RegistryKeys& keys, std::string_view id, std::uint64_t uses_max,
                        std::chrono::seconds kept);

}  // namespace weft
