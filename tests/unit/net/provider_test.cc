#include "net/transport/provider.h"

#include <doctest/doctest.h>
#include <rdma/fi_endpoint.h>

namespace weft::net {
namespace {

// A list in the form that fi_getinfo() returns.
InfoPtr list_of(std::initializer_list<std::uint32_t> protocols) {
  InfoPtr list;
  fi_info** end = nullptr;
  for (const std::uint32_t protocol : protocols) {
    fi_info* const info = fi_allocinfo();
    info->ep_attr->protocol = protocol;
    if (end == nullptr)
      list.reset(info);
    else
      *end = info;
    end = &info->next;
  }
  return list;
}

TEST_CASE("iWARP devices are left out") {
  const auto mixed = list_of({FI_PROTO_IWARP, FI_PROTO_RDMA_CM_IB_RC, FI_PROTO_IWARP});
  CHECK(first_usable(mixed.get()) == mixed->next);
  const auto good = list_of({FI_PROTO_RDMA_CM_IB_RC});
  CHECK(first_usable(good.get()) == good.get());
  CHECK(first_usable(list_of({FI_PROTO_IWARP, FI_PROTO_IWARP}).get()) == nullptr);
  CHECK(first_usable(nullptr) == nullptr);
}

}  // namespace
}  // namespace weft::net
