"""The way to a machine without a network: a folder is packed here and unpacked there.

``ci/airgap`` is the command; docs/air-gap.md tells how to use it.
"""
