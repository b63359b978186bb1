"""Transformations of workloads: conversion, selection, resampling."""
