// Argument checks that every transport makes before it queues a message or a read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/cluster/transport.h"

namespace weft::net {

Status check_message(std::span<const std::byte> message);
// Errc::permission if the range is not in the window, Errc::invalid if it does not fit into the landing.
Status check_read(const RemoteWindow& window, std::uint64_t offset, const Landing& landing, std::size_t at,
                  std::size_t length);

}  // namespace weft::net
